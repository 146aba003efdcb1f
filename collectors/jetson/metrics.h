#pragma once

#include "collectors/source/metric_list.h"

/* All that the `jetson` collector may emit alone. */
#define JETSON_METRICS(ROW)                                                                        \
    ROW(JETSON_CPU_FREQUENCY, GAUGE, "jetson_cpu_frequency_hertz", "hertz", "cpu",                 \
        "Clock of a CPU; measured where that may be read.")                                        \
    ROW(JETSON_CPU_FREQUENCY_MAX, GAUGE, "jetson_cpu_frequency_max_hertz", "hertz", "cpu",         \
        "Highest clock that a CPU may take.")                                                      \
    ROW(JETSON_CPU_FREQUENCY_MIN, GAUGE, "jetson_cpu_frequency_min_hertz", "hertz", "cpu",         \
        "Lowest clock that a CPU may take.")                                                       \
    ROW(JETSON_CPU_ONLINE, GAUGE, "jetson_cpu_online", NULL, "cpu",                                \
        "Whether a CPU is switched on (1), or off by the power mode (0).")                         \
    ROW(JETSON_EMC_FREQUENCY, GAUGE, "jetson_emc_frequency_hertz", "hertz", NULL,                  \
        "Clock of the memory controller.")                                                         \
    ROW(JETSON_EMC_FREQUENCY_MAX, GAUGE, "jetson_emc_frequency_max_hertz", "hertz", NULL,          \
        "Highest clock that the memory controller may take.")                                      \
    ROW(JETSON_EMC_FREQUENCY_MIN, GAUGE, "jetson_emc_frequency_min_hertz", "hertz", NULL,          \
        "Lowest clock that the memory controller may take.")                                       \
    ROW(JETSON_EMC_UTILIZATION, GAUGE, "jetson_emc_utilization_ratio", "ratio", NULL,              \
        "Activity of the memory controller relative to its clock.")                                \
    ROW(JETSON_ENERGY_JOULES, COUNTER, "jetson_energy_joules_total", "joules", NULL,               \
        "Energy that the module has taken.")                                                       \
    ROW(JETSON_ENGINE_ACTIVE, GAUGE, "jetson_engine_active", NULL, "engine",                       \
        "Whether an engine is clocked (1) or gated (0).")                                          \
    ROW(JETSON_ENGINE_FREQUENCY, GAUGE, "jetson_engine_frequency_hertz", "hertz", "engine",        \
        "Clock of an engine that is not gated.")                                                   \
    ROW(JETSON_ENGINE_UTILIZATION, GAUGE, "jetson_engine_utilization_ratio", "ratio", "engine",    \
        "Share of time that an engine was busy recently.")                                         \
    ROW(JETSON_FAN_PWM, GAUGE, "jetson_fan_pwm_ratio", "ratio", "fan", "How far a fan is driven.") \
    ROW(JETSON_FAN_RPM, GAUGE, "jetson_fan_rpm", NULL, "fan", "Turns of a fan per minute.")        \
    ROW(JETSON_GPC_FREQUENCY, GAUGE, "jetson_gpc_frequency_hertz", "hertz", "gpc",                 \
        "Measured clock of a cluster of the GPU; 0 while it is gated.")                            \
    ROW(JETSON_GPU_FREQUENCY_MIN, GAUGE, "gpu_frequency_min_hertz", "hertz", "gpu, uuid",          \
        "Lowest clock that the GPU may take.")                                                     \
    ROW(JETSON_INFO, INFO, "jetson_info", NULL, "l4t, model, soc",                                 \
        "What board this is and its L4T release; always 1.")                                       \
    ROW(JETSON_IRAM_TOTAL, GAUGE, "jetson_iram_total_bytes", "bytes", NULL, "On-chip memory.")     \
    ROW(JETSON_IRAM_USED, GAUGE, "jetson_iram_used_bytes", "bytes", NULL,                          \
        "On-chip memory that is allocated.")                                                       \
    ROW(JETSON_FREE_BLOCK_BYTES, GAUGE, "jetson_memory_largest_free_block_bytes", "bytes", NULL,   \
        "Size of the largest blocks of memory that are free in one piece.")                        \
    ROW(JETSON_FREE_BLOCKS, GAUGE, "jetson_memory_largest_free_blocks", NULL, NULL,                \
        "How many of the largest free blocks of memory there are.")                                \
    ROW(JETSON_MEMORY_TOTAL, GAUGE, "jetson_memory_total_bytes", "bytes", NULL,                    \
        "Memory of CPUs and GPU.")                                                                 \
    ROW(JETSON_MEMORY_USED, GAUGE, "jetson_memory_used_bytes", "bytes", NULL,                      \
        "Memory in use, without buffers and page cache, as tegrastats counts it.")                 \
    ROW(JETSON_OVERCURRENT_EVENTS, COUNTER, "jetson_overcurrent_events_total", NULL, "oc",         \
        "How often an over-current alarm has throttled the module.")                               \
    ROW(JETSON_POWER_MODE, GAUGE, "jetson_power_mode", NULL, "id, name",                           \
        "The power mode set by nvpmodel; always 1.")                                               \
    ROW(JETSON_POWER_TOTAL, GAUGE, "jetson_power_total_watts", "watts", NULL,                      \
        "Power that the module takes.")                                                            \
    ROW(JETSON_RAIL_CURRENT, GAUGE, "jetson_rail_current_amperes", "amperes", "rail",              \
        "Current on a supply rail.")                                                               \
    ROW(JETSON_RAIL_ENERGY_JOULES, COUNTER, "jetson_rail_energy_joules_total", "joules", "rail",   \
        "Energy that was taken from a supply rail.")                                               \
    ROW(JETSON_RAIL_POWER_PEAK, GAUGE, "jetson_rail_power_peak_watts", "watts", "rail",            \
        "Highest power on a supply rail within the peak window.")                                  \
    ROW(JETSON_RAIL_POWER, GAUGE, "jetson_rail_power_watts", "watts", "rail",                      \
        "Power on a supply rail; a gated one may read below zero.")                                \
    ROW(JETSON_RAIL_VOLTAGE, GAUGE, "jetson_rail_voltage_volts", "volts", "rail",                  \
        "Voltage of a supply rail.")                                                               \
    ROW(JETSON_SOURCE_AGE, GAUGE, "jetson_source_last_record_age_seconds", "seconds", "source",    \
        "How old the latest record of a source is.")                                               \
    ROW(JETSON_SOURCE_UP, GAUGE, "jetson_source_up", NULL, "source",                               \
        "Whether a source gives values (1) or not (0).")                                           \
    ROW(JETSON_SWAP_CACHED, GAUGE, "jetson_swap_cached_bytes", "bytes", NULL,                      \
        "Swapped memory that is also in memory.")                                                  \
    ROW(JETSON_SWAP_TOTAL, GAUGE, "jetson_swap_total_bytes", "bytes", NULL, "Swap space.")         \
    ROW(JETSON_SWAP_USED, GAUGE, "jetson_swap_used_bytes", "bytes", NULL, "Swap space in use.")    \
    ROW(JETSON_TEGRASTATS_PARSE_ERRORS, COUNTER, "jetson_tegrastats_parse_errors_total", NULL,     \
        NULL, "Lines of tegrastats that were no record.")                                          \
    ROW(JETSON_TEGRASTATS_RESTARTS, COUNTER, "jetson_tegrastats_restarts_total", NULL, NULL,       \
        "How often tegrastats had to be started again.")                                           \
    ROW(JETSON_TEGRASTATS_UNKNOWN_TOKENS, COUNTER, "jetson_tegrastats_unknown_tokens_total", NULL, \
        NULL, "Parts of records that were not understood.")                                        \
    ROW(JETSON_TEMPERATURE, GAUGE, "jetson_temperature_celsius", "celsius", "zone",                \
        "Temperature of a thermal zone.")                                                          \
    ROW(JETSON_THERMAL_TRIP, GAUGE, "jetson_thermal_trip_celsius", "celsius", "zone, type",        \
        "Temperature at which the kernel acts on a thermal zone.")                                 \
    ROW(JETSON_THROTTLE_ALERT, GAUGE, "jetson_throttle_alert", NULL, "type",                       \
        "Whether the clocks of something are held down at the moment (1) or not (0).")

enum jetson_metric { JETSON_METRICS(METRIC_LIST_ID) JETSON_N_METRICS };

extern const struct metric_desc jetson_descs[JETSON_N_METRICS + 1]; /* ended by a nameless row */
