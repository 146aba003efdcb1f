#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exporter/metrics/labels.h"

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

/* The label sets of one cgroup's disks: its own labels and `device`. A zeroed struct is empty. */
struct io_series {
    struct io_series_row {
        uint32_t major, minor;
        struct labels *labels;
    } * rows;
    size_t n_rows;
    size_t cap_rows;
};

void io_series_finish(struct io_series *series);

/* `base` with the label device="<prefix><name>"; kept until io_series_finish. */
const struct labels *io_series_labels(struct io_series *series, const struct labels *base,
                                      const char *prefix, struct block_devices *devices,
                                      const char *sysfs, uint32_t major, uint32_t minor);
