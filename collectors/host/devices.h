#pragma once

#include "collectors/source/filter.h"
#include "collectors/source/rows.h"
#include "exporter/metrics/labels.h"
#include "exporter/metrics/snapshot.h"

enum { HOST_DEVICE_MAX_VALUES = 17 };

/* A disk or a network device, kept from one collection to the next with its rendered label. */
struct host_device {
    struct row row;        /* its name */
    struct labels *labels; /* NULL: the user left it out */
    size_t n_values;
    double values[HOST_DEVICE_MAX_VALUES];
};

/* The devices that exist, in the kernel's order. */
struct host_devices {
    struct rows rows;
    const struct metric_desc *descs; /* of value 0, 1, …, up to a nameless one */
    struct filter exclude;
};

/* Leaves out the devices whose name matches the setting `exclude`. */
void host_devices_init(struct host_devices *devices, const struct metric_desc *descs,
                       const struct settings *settings, const char *exclude);
void host_devices_finish(void *devices); /* as the `close` of a part */

/* The row of that device, whose values the caller sets; valid until host_devices_collect. */
struct host_device *host_devices_see(struct host_devices *devices, struct scan_word name);

/* As the `collect` of a part: forgets the devices not seen since the last time, and adds the values
 * of the others. */
int host_devices_collect(void *devices, struct buf *scratch, struct snapshot *out,
                         struct error *err);
