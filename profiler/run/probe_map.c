#include "profiler/run/probe_map.h"

#include <string.h>

#include "exporter/core/cleanup.h"

#define GPU(metric_, key_, type_, unit_, help_)                                                    \
    {                                                                                              \
        .metric = (metric_), .key = (key_), .label = "gpu", .type = (type_),                       \
        .group = RUN_METRICS_GPU, .unit = (unit_), .help = (help_)                                 \
    }

/* Where a metric has several rows, each makes a value of it. Sorted by metric. */
const struct run_probe_row run_probe_rows[] = {
    GPU("gpu_busy_seconds_total", "gpu.busy_seconds", RUN_COUNTER, "s",
        "Time in which the GPU was busy"),
    GPU("gpu_energy_joules_total", "gpu.energy_joules", RUN_COUNTER, "J",
        "Energy that the GPU has used"),
    {.metric = "gpu_energy_joules_total",
     .key = "energy.joules",
     .unless = "jetson_energy_joules_total",
     .use = RUN_PROBE_SUM,
     .type = RUN_COUNTER,
     .group = RUN_METRICS_POWER,
     .unit = "J",
     .help = "Energy that the board has used, or its GPUs where only they are measured"},
    GPU("gpu_frequency_hertz", "gpu.frequency_hertz", RUN_GAUGE, "Hz", "Clock of the GPU"),
    GPU("gpu_memory_used_bytes", "gpu.memory_bytes", RUN_GAUGE, "B", "Memory of the GPU in use"),
    GPU("gpu_power_watts", "gpu.power_watts", RUN_GAUGE, "W", "Power that the GPU draws"),
    {.metric = "gpu_power_watts",
     .key = "power.watts",
     .unless = "jetson_power_total_watts",
     .use = RUN_PROBE_SUM,
     .type = RUN_GAUGE,
     .group = RUN_METRICS_POWER,
     .unit = "W",
     .help = "Power that the board draws, or its GPUs where only they are measured"},
    {.metric = "gpu_temperature_celsius",
     .key = "gpu.temperature_celsius",
     .label = "gpu",
     .type = RUN_GAUGE,
     .group = RUN_METRICS_GPU,
     .unit = "°C",
     .help = "Temperature of the GPU"},
    GPU("gpu_utilization_ratio", "gpu.utilization_ratio", RUN_GAUGE, "",
        "Part of the time in which the GPU was busy"),
    {.metric = "jetson_cpu_frequency_hertz",
     .key = "system.cpu_frequency_hertz",
     .label = "cpu",
     .type = RUN_GAUGE,
     .group = RUN_METRICS_SYSTEM,
     .unit = "Hz",
     .help = "Clock by CPU core"},
    {.metric = "jetson_emc_utilization_ratio",
     .key = "memory.bandwidth_ratio",
     .type = RUN_GAUGE,
     .group = RUN_METRICS_SYSTEM,
     .unit = "",
     .help = "Part of the memory's bandwidth in use"},
    {.metric = "jetson_energy_joules_total",
     .key = "energy.joules",
     .type = RUN_COUNTER,
     .group = RUN_METRICS_POWER,
     .unit = "J",
     .help = "Energy that the board has used, or its GPUs where only they are measured"},
    {.metric = "jetson_power_total_watts",
     .key = "power.watts",
     .type = RUN_GAUGE,
     .group = RUN_METRICS_POWER,
     .unit = "W",
     .help = "Power that the board draws, or its GPUs where only they are measured"},
    {.metric = "jetson_rail_energy_joules_total",
     .key = "energy.rail_joules",
     .label = "rail",
     .type = RUN_COUNTER,
     .group = RUN_METRICS_POWER,
     .unit = "J",
     .help = "Energy by power rail"},
    {.metric = "jetson_rail_power_watts",
     .key = "power.rail_watts",
     .label = "rail",
     .type = RUN_GAUGE,
     .group = RUN_METRICS_POWER,
     .unit = "W",
     .help = "Power by power rail"},
    {.metric = "jetson_temperature_celsius",
     .key = "temperature.celsius",
     .label = "zone",
     .type = RUN_GAUGE,
     .group = RUN_METRICS_SYSTEM,
     .unit = "°C",
     .help = "Temperature by thermal zone"},
    {.metric = "jetson_throttle_alert",
     .key = "throttled.ratio",
     .use = RUN_PROBE_MAX,
     .type = RUN_GAUGE,
     .group = RUN_METRICS_SYSTEM,
     .unit = "",
     .help = "1 while the hardware slows itself down"},
    {.metric = "node_load1",
     .key = "system.load1",
     .type = RUN_GAUGE,
     .group = RUN_METRICS_SYSTEM,
     .unit = "",
     .help = "Load of the machine over a minute"},
    {.metric = "node_memory_MemAvailable_bytes",
     .key = "system.memory_available_bytes",
     .type = RUN_GAUGE,
     .group = RUN_METRICS_SYSTEM,
     .unit = "B",
     .help = "Memory that the machine has left"},
    {.metric = "node_thermal_zone_temp",
     .key = "temperature.celsius",
     .label = "type",
     .as_label = "zone",
     .unless = "jetson_temperature_celsius",
     .type = RUN_GAUGE,
     .group = RUN_METRICS_SYSTEM,
     .unit = "°C",
     .help = "Temperature by thermal zone"},
    {.metric = "nvidia_throttle_active",
     .key = "throttled.ratio",
     .label = "reason",
     .unless = "jetson_throttle_alert",
     .only = "slowdown",
     .use = RUN_PROBE_MAX,
     .type = RUN_GAUGE,
     .group = RUN_METRICS_SYSTEM,
     .unit = "",
     .help = "1 while the hardware slows itself down"},
};

const size_t run_probe_n_rows = ARRAY_LEN(run_probe_rows);

const char *run_probe_label(const char *labels, size_t len, const char *name, size_t *ret_len) {
    size_t name_len = strlen(name);
    const char *end = labels + len;
    while (labels < end) {
        const char *equals = memchr(labels, '=', (size_t)(end - labels));
        if (equals == NULL || end - equals < 3) {
            return NULL;
        }
        const char *value = equals + 2; /* behind the quote */
        const char *at = value;
        while (at < end && *at != '"') {
            at += *at == '\\' ? 2 : 1;
        }
        if (at >= end) {
            return NULL;
        }
        if ((size_t)(equals - labels) == name_len && memcmp(labels, name, name_len) == 0) {
            *ret_len = (size_t)(at - value);
            return value;
        }
        labels = at + 1 + (at + 1 < end ? 1 : 0); /* the quote and the comma */
    }
    return NULL;
}

void run_probe_key(const struct run_probe_row *row, const char *labels, size_t len,
                   struct buf *out) {
    buf_add_str(out, row->key);
    size_t value_len = 0;
    const char *value = row->label != NULL && row->use == RUN_PROBE_EACH
                            ? run_probe_label(labels, len, row->label, &value_len)
                            : NULL;
    bool first_gpu = value_len == 1 && *value == '0' && strcmp(row->label, "gpu") == 0;
    if (value != NULL && !first_gpu) {
        buf_printf(out, "{%s=\"%.*s\"}", row->as_label != NULL ? row->as_label : row->label,
                   (int)value_len, value);
    }
}
