#pragma once

#include <stddef.h>
#include <stdint.h>

/* Names of block devices by their numbers, kept for a while: cgroups only know the numbers. A
 * zeroed struct knows none. */
struct block_devices {
    struct block_device *rows;
    size_t n_rows;
    size_t cap_rows;
};

struct block_device {
    uint32_t major, minor;
    char *name;
};

void block_devices_finish(struct block_devices *devices);

/* Forgets all names: numbers of removable devices are used again. */
void block_devices_forget(struct block_devices *devices);

/* "sda", or "8:0" where `sysfs` does not know the device. Owned by `devices`; NULL when memory is
 * out. */
const char *block_devices_name(struct block_devices *devices, const char *sysfs, uint32_t major,
                               uint32_t minor);
