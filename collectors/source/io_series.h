#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exporter/metrics/labels.h"

/* Names of block devices by their numbers, kept for a minute: cgroups only know the numbers, and
 * those of removable devices are used again. Only `sysfs` is set by the user. */
struct block_devices {
    const char *sysfs;
    int64_t forget_ns;
    unsigned generation; /* changes when names are forgotten */
    struct block_device *rows;
    size_t n_rows;
    size_t cap_rows;
};

struct block_device {
    uint32_t major, minor;
    char *name;
};

void block_devices_finish(struct block_devices *devices);

/* To be called before a collection: forgets the names and their label sets after a minute. */
void block_devices_refresh(struct block_devices *devices, int64_t now_ns);

/* The label sets of one cgroup's disks: its own labels and `device`. A zeroed struct is empty. */
struct io_series {
    unsigned generation; /* of the devices */
    struct io_series_row {
        uint32_t major, minor;
        struct labels *labels;
    } * rows;
    size_t n_rows;
    size_t cap_rows;
};

void io_series_finish(struct io_series *series);

/* `base` with the label device="<prefix><name>"; kept until the names are refreshed. */
const struct labels *io_series_labels(struct io_series *series, const struct labels *base,
                                      const char *prefix, struct block_devices *devices,
                                      uint32_t major, uint32_t minor);
