#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collectors/source/block_device.h"
#include "exporter/metrics/labels.h"

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

/* `base` with the label device="<prefix><name>"; kept until io_series_finish. NULL when memory is
 * out. */
const struct labels *io_series_labels(struct io_series *series, const struct labels *base,
                                      const char *prefix, struct block_devices *devices,
                                      const char *sysfs, uint32_t major, uint32_t minor);
