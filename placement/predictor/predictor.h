#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/buf.h"

/* The features that run times are predicted from, with the order and names of the original's
 * training data. */
enum feature {
    FEATURE_CONV_LAYERS,
    FEATURE_LOAD, /* of all CPUs together, percent */
    FEATURE_READ_BYTES,
    FEATURE_WRITE_BYTES,
    FEATURE_DISK_USAGE, /* of the root filesystem, percent */
    FEATURE_FILTERS,
    FEATURE_FC_LAYERS,
    FEATURE_DEVICE, /* an enum device */
    FEATURE_POOL_LAYERS,
    FEATURE_PARAMETERS,
    N_FEATURES,
};

extern const char *const feature_names[N_FEATURES];

/* Kinds of device as numbers; the original's. */
enum device { DEVICE_OTHER = -1, DEVICE_RASPBERRY = 0, DEVICE_JETSON = 1 };

/* The kind by the name of a board ("Raspberry Pi 4 Model B Rev 1.4", "NVIDIA Jetson Xavier NX") or
 * of training data ("raspberrypi", "jetson", "desktop"). */
enum device device_of(const char *name);

/* One run of a model, a row of training data as CSV. */
struct run {
    const char *model, *device;
    uint64_t conv_layers, filters, fc_layers, pool_layers, parameters;
    int64_t read_bytes, write_bytes;
    double disk_percent, load_percent, seconds;
    unsigned number;
};

extern const char run_header[]; /* a line */

/* Appends a line. */
void run_write(const struct run *run, struct buf *out);
