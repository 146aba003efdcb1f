#pragma once

#include "collectors/source/metric_list.h"

/* The names under which jetson-exporter shows a node: tegra_*, in its spelling, percentages, CPUs
 * counted from 1. Queries that were written for it keep working beside ours.
 * Rows: id, name, label (NULL: none), the description of the same value (NULL: none) and its
 * factor, help. */
#define TEGRA_METRICS(ROW)                                                                         \
    ROW(TEGRA_CPU_FREQUENCY, "tegra_cpu_frequency_hz", "cpu", &jetson_descs[JETSON_CPU_FREQUENCY], \
        1, "Clock of a CPU; CPUs are counted from 1.")                                             \
    ROW(TEGRA_CPU_UTIL, "tegra_cpu_util_percentage", "cpu", NULL, 0,                               \
        "Load of a CPU, in percent; CPUs are counted from 1.")                                     \
    ROW(TEGRA_EMC_FREQUENCY, "tegra_emc_frequency_hz", NULL, &jetson_descs[JETSON_EMC_FREQUENCY],  \
        1, "Clock of the memory controller.")                                                      \
    ROW(TEGRA_EMC_UTIL, "tegra_emc_util_percentage", NULL, &jetson_descs[JETSON_EMC_UTILIZATION],  \
        100, "Load of the memory controller.")                                                     \
    ROW(TEGRA_GPU_FREQUENCY, "tegra_gpu_frequency_hz", NULL, &gpu_descs[GPU_FREQUENCY], 1,         \
        "Clock of the GPU.")                                                                       \
    ROW(TEGRA_GPU_UTIL, "tegra_gpu_util_percentage", NULL, &gpu_descs[GPU_UTILIZATION], 100,       \
        "Load of the GPU.")                                                                        \
    ROW(TEGRA_LAST_UPDATED, "tegra_last_updated_timestamp_epoch", NULL, NULL, 0,                   \
        "When the values were read, in seconds since 1970.")                                       \
    ROW(TEGRA_LFB_NBLOCK, "tegra_lfb_nblock_count", NULL, &jetson_descs[JETSON_FREE_BLOCKS], 1,    \
        "How many of the largest free blocks there are.")                                          \
    ROW(TEGRA_LFB_SIZE, "tegra_lfb_size_bytes", NULL, &jetson_descs[JETSON_FREE_BLOCK_BYTES], 1,   \
        "Size of the largest free blocks.")                                                        \
    ROW(TEGRA_MTS_BG, "tegra_mts_bg_percentage", NULL, NULL, 0,                                    \
        "Background share of the code optimiser.")                                                 \
    ROW(TEGRA_MTS_FG, "tegra_mts_fg_percentage", NULL, NULL, 0,                                    \
        "Foreground share of the code optimiser.")                                                 \
    ROW(TEGRA_RAM_TOTAL, "tegra_ram_total_bytes", NULL, &jetson_descs[JETSON_MEMORY_TOTAL], 1,     \
        "Memory.")                                                                                 \
    ROW(TEGRA_RAM_USED, "tegra_ram_used_bytes", NULL, &jetson_descs[JETSON_MEMORY_USED], 1,        \
        "Memory in use.")                                                                          \
    ROW(TEGRA_SWAP_CACHED, "tegra_swap_cached_bytes", NULL, &jetson_descs[JETSON_SWAP_CACHED], 1,  \
        "Swapped memory that is also in memory.")                                                  \
    ROW(TEGRA_SWAP_TOTAL, "tegra_swap_total_bytes", NULL, &jetson_descs[JETSON_SWAP_TOTAL], 1,     \
        "Swap space.")                                                                             \
    ROW(TEGRA_SWAP_USED, "tegra_swap_used_bytes", NULL, &jetson_descs[JETSON_SWAP_USED], 1,        \
        "Swap space in use.")                                                                      \
    ROW(TEGRA_TEMPERATURE, "tegra_temperature_celcius", "sensor",                                  \
        &jetson_descs[JETSON_TEMPERATURE], 1, "Temperature of a thermal zone.")                    \
    ROW(TEGRA_WATTAGE_AVERAGE, "tegra_wattage_average_milliwatts", "sensor", NULL, 0,              \
        "Mean power on a supply rail since the exporter started.")                                 \
    ROW(TEGRA_WATTAGE_CURRENT, "tegra_wattage_current_milliwatts", "sensor",                       \
        &jetson_descs[JETSON_RAIL_POWER], 1000, "Power on a supply rail.")

/* The names of the live prototype, on every machine; those of GPUs are in gpu_metrics.h. */
#define PROTOTYPE_METRICS(ROW)                                                                     \
    ROW(PROTOTYPE_RAM, "RAMUsage", NULL, NULL, 0, "Memory in use, in MiB.")                        \
    ROW(PROTOTYPE_CPU, "TegraCPUUsage", NULL, NULL, 0,                                             \
        "Load of all CPUs, in percent of one of them.")                                            \
    ROW(PROTOTYPE_TEGRA_RAM, "TegraRAMUsage", NULL, NULL, 0, "Memory in use, in MiB.")

enum jetson_compat_metric {
    TEGRA_METRICS(METRIC_LIST_ID) PROTOTYPE_METRICS(METRIC_LIST_ID) JETSON_COMPAT_N_METRICS
};

extern const struct metric_desc
    jetson_compat_descs[JETSON_COMPAT_N_METRICS + 1]; /* ended by a nameless row */
