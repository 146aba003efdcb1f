#pragma once

#include "collectors/collector.h"
#include "exporter/core/buf.h"

/* One topic of the `host` collector. A part that fails does not keep the others from collecting.
 * A source that this machine lacks is no failure: the part adds nothing. */
struct host_part {
    const char *name;
    void *(*open)(const struct collector_env *env);

    /* `scratch` is for the text of files; the next part overwrites it. */
    int (*collect)(void *state, struct buf *scratch, struct snapshot *out, struct error *err);

    void (*close)(void *state);
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

/* What each part may emit; ended by a nameless row. */
extern const struct metric_desc host_character_metrics[];
extern const struct metric_desc host_cpu_metrics[];
extern const struct metric_desc host_disk_metrics[];
extern const struct metric_desc host_filesystem_metrics[];
extern const struct metric_desc host_load_metrics[];
extern const struct metric_desc host_memory_metrics[];
extern const struct metric_desc host_network_metrics[];
extern const struct metric_desc host_pressure_metrics[];
extern const struct metric_desc host_system_metrics[];
extern const struct metric_desc host_thermal_metrics[];
