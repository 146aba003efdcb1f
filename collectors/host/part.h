#pragma once

#include "collectors/collector.h"
#include "exporter/core/buf.h"

/* One topic of the `host` collector. A part that fails does not keep the others from collecting.
 * A source that this machine lacks is no failure: the part adds nothing. */
struct host_part {
    const char *name;
    int (*open)(const struct collector_env *env, void **ret_state, struct error *err);

    /* `scratch` is for the text of files; the next part overwrites it. */
    int (*collect)(void *state, struct buf *scratch, struct snapshot *out, struct error *err);

    void (*close)(void *state); /* accepts NULL */
};

extern const struct host_part host_character_part;
extern const struct host_part host_cpu_part;
extern const struct host_part host_disk_part;
extern const struct host_part host_filesystem_part;
extern const struct host_part host_load_part;
extern const struct host_part host_memory_part;
extern const struct host_part host_network_part;
extern const struct host_part host_pressure_part;
extern const struct host_part host_system_part;
extern const struct host_part host_thermal_part;

/* What each part may emit; host_metrics lists them all for the collector. */
enum {
    HOST_CHARACTER_N_METRICS = 6,
    HOST_CPU_N_METRICS = 8,
    HOST_DISK_N_METRICS = 17,
    HOST_FILESYSTEM_N_METRICS = 7,
    HOST_LOAD_N_METRICS = 3,
    HOST_MEMORY_N_METRICS = 68,
    HOST_NETWORK_N_METRICS = 16,
    HOST_PRESSURE_N_METRICS = 6,
    HOST_SYSTEM_N_METRICS = 2,
    HOST_THERMAL_N_METRICS = 1,
};
extern const struct metric_desc host_character_metrics[HOST_CHARACTER_N_METRICS];
extern const struct metric_desc host_cpu_metrics[HOST_CPU_N_METRICS];
extern const struct metric_desc host_disk_metrics[HOST_DISK_N_METRICS];
extern const struct metric_desc host_filesystem_metrics[HOST_FILESYSTEM_N_METRICS];
extern const struct metric_desc host_load_metrics[HOST_LOAD_N_METRICS];
extern const struct metric_desc host_memory_metrics[HOST_MEMORY_N_METRICS];
extern const struct metric_desc host_network_metrics[HOST_NETWORK_N_METRICS];
extern const struct metric_desc host_pressure_metrics[HOST_PRESSURE_N_METRICS];
extern const struct metric_desc host_system_metrics[HOST_SYSTEM_N_METRICS];
extern const struct metric_desc host_thermal_metrics[HOST_THERMAL_N_METRICS];

extern const struct metric_desc *const host_metrics[];
