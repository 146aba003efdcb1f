#pragma once

#include <stddef.h>

#include "collectors/source/filter.h"
#include "exporter/core/scan.h"
#include "exporter/metrics/labels.h"
#include "exporter/metrics/snapshot.h"

enum { HOST_DEVICE_MAX_VALUES = 17 };

/* A disk or a network device, kept from one collection to the next with its rendered label. */
struct host_device {
    char *name;
    size_t name_len;
    struct labels *labels; /* NULL: the user left it out */
    unsigned round;        /* when it was last seen */
    size_t n_values;
    double values[HOST_DEVICE_MAX_VALUES];
};

/* The devices that exist, in the kernel's order. A zeroed struct is an empty table that leaves out
 * nothing. */
struct host_devices {
    struct host_device *rows;
    size_t n_rows;
    size_t cap_rows;
    size_t next; /* where the next device is expected: mostly they come in the same order */
    unsigned round;
    struct filter exclude;
};

void host_devices_finish(struct host_devices *devices);

/* Begins a collection. */
void host_devices_begin(struct host_devices *devices);

/* The row of that device, added if it is not there yet; valid until the next call. The caller
 * sets its values. */
struct host_device *host_devices_see(struct host_devices *devices, struct scan_word name);

/* Ends a collection: forgets the devices that were not seen in it. */
void host_devices_sweep(struct host_devices *devices);

/* Adds value i of each device that has so many to the family descs[i], up to a nameless one. */
void host_devices_emit(const struct host_devices *devices, const struct metric_desc *descs,
                       struct snapshot *out);
