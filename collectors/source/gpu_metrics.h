#pragma once

#include "collectors/source/metric_list.h"
#include "exporter/metrics/snapshot.h"

/* Metrics that mean the same for an integrated GPU and for a card: those that both `jetson` and
 * `nvml` emit, and those that only cards have. The first two are the live prototype's, on request.
 */
#define GPU_METRICS(ROW)                                                                           \
    ROW(GPU_PROTOTYPE_TOTAL, GAUGE, "GPUMemoryTotal", NULL, "gpu, uuid",                           \
        "Memory that the GPU can use, in bytes.")                                                  \
    ROW(GPU_PROTOTYPE_USED, GAUGE, "GPUMemoryUsage", NULL, "gpu, uuid",                            \
        "Memory that is allocated for the GPU, in bytes.")                                         \
    ROW(CONTAINER_GPU_MEMORY, GAUGE, "container_gpu_memory_bytes", "bytes", "gpu, id, uuid",       \
        "GPU memory of a container's processes.")                                                  \
    ROW(CONTAINER_GPU_UTILIZATION, GAUGE, "container_gpu_utilization_ratio", "ratio",              \
        "gpu, id, uuid", "Share of time that a container's processes kept the GPU busy recently.") \
    ROW(GPU_BAR1_MEMORY_TOTAL, GAUGE, "gpu_bar1_memory_total_bytes", "bytes", "gpu, uuid",         \
        "Window through which the host can reach the GPU's memory.")                               \
    ROW(GPU_BAR1_MEMORY_USED, GAUGE, "gpu_bar1_memory_used_bytes", "bytes", "gpu, uuid",           \
        "Mapped part of the window through which the host can reach the GPU's memory.")            \
    ROW(GPU_BUSY_SECONDS, COUNTER, "gpu_busy_seconds_total", "seconds", "gpu, uuid",               \
        "Time the GPU was busy, its load integrated between scrapes.")                             \
    ROW(GPU_DECODER_UTILIZATION, GAUGE, "gpu_decoder_utilization_ratio", "ratio", "gpu, uuid",     \
        "Share of time that the video decoder was busy recently.")                                 \
    ROW(GPU_ENCODER_UTILIZATION, GAUGE, "gpu_encoder_utilization_ratio", "ratio", "gpu, uuid",     \
        "Share of time that the video encoder was busy recently.")                                 \
    ROW(GPU_ENERGY_JOULES, COUNTER, "gpu_energy_joules_total", "joules", "gpu, uuid",              \
        "Energy that the GPU has taken.")                                                          \
    ROW(GPU_FAN_SPEED, GAUGE, "gpu_fan_speed_ratio", "ratio", "fan, gpu, uuid",                    \
        "How far a fan is driven; some go beyond 1.")                                              \
    ROW(GPU_FREQUENCY, GAUGE, "gpu_frequency_hertz", "hertz", "gpu, uuid", "Clock of the GPU.")    \
    ROW(GPU_FREQUENCY_MAX, GAUGE, "gpu_frequency_max_hertz", "hertz", "gpu, uuid",                 \
        "Highest clock that the GPU may take.")                                                    \
    ROW(GPU_INFO, INFO, "gpu_info", NULL,                                                          \
        "cuda_version, driver_version, gpu, name, pci_bus_id, uuid, vbios_version",                \
        "What the GPU is; always 1.")                                                              \
    ROW(GPU_JPEG_UTILIZATION, GAUGE, "gpu_jpeg_utilization_ratio", "ratio", "gpu, uuid",           \
        "Share of time that the JPEG decoder was busy recently.")                                  \
    ROW(GPU_MEMORY_FREE, GAUGE, "gpu_memory_free_bytes", "bytes", "gpu, uuid",                     \
        "Memory of the GPU that is free.")                                                         \
    ROW(GPU_MEMORY_FREQUENCY, GAUGE, "gpu_memory_frequency_hertz", "hertz", "gpu, uuid",           \
        "Clock of the GPU's memory.")                                                              \
    ROW(GPU_MEMORY_FREQUENCY_MAX, GAUGE, "gpu_memory_frequency_max_hertz", "hertz", "gpu, uuid",   \
        "Highest clock that the GPU's memory may take.")                                           \
    ROW(GPU_MEMORY_RESERVED, GAUGE, "gpu_memory_reserved_bytes", "bytes", "gpu, uuid",             \
        "Memory that the driver and the firmware keep for themselves.")                            \
    ROW(GPU_MEMORY_TEMPERATURE, GAUGE, "gpu_memory_temperature_celsius", "celsius", "gpu, uuid",   \
        "Temperature of the GPU's memory.")                                                        \
    ROW(GPU_MEMORY_TOTAL, GAUGE, "gpu_memory_total_bytes", "bytes", "gpu, uuid",                   \
        "Memory that the GPU can use; an integrated one shares it with the CPUs.")                 \
    ROW(GPU_MEMORY_USED, GAUGE, "gpu_memory_used_bytes", "bytes", "gpu, uuid",                     \
        "Memory that is allocated for the GPU.")                                                   \
    ROW(GPU_MEMORY_USED_PEAK, GAUGE, "gpu_memory_used_peak_bytes", "bytes", "gpu, uuid",           \
        "Most memory that was allocated within the peak window.")                                  \
    ROW(GPU_MEMORY_UTILIZATION, GAUGE, "gpu_memory_utilization_ratio", "ratio", "gpu, uuid",       \
        "Share of time that the GPU's memory was read or written recently.")                       \
    ROW(GPU_OFA_UTILIZATION, GAUGE, "gpu_ofa_utilization_ratio", "ratio", "gpu, uuid",             \
        "Share of time that the optical flow accelerator was busy recently.")                      \
    ROW(GPU_PCIE_LINK_GENERATION, GAUGE, "gpu_pcie_link_generation", NULL, "gpu, uuid",            \
        "PCI Express generation of the link, lower while the GPU is idle.")                        \
    ROW(GPU_PCIE_LINK_GENERATION_MAX, GAUGE, "gpu_pcie_link_generation_max", NULL, "gpu, uuid",    \
        "Highest generation that GPU and slot can do together.")                                   \
    ROW(GPU_PCIE_LINK_LANES, GAUGE, "gpu_pcie_link_lanes", NULL, "gpu, uuid",                      \
        "PCI Express lanes in use.")                                                               \
    ROW(GPU_PCIE_LINK_LANES_MAX, GAUGE, "gpu_pcie_link_lanes_max", NULL, "gpu, uuid",              \
        "Most lanes that GPU and slot can use together.")                                          \
    ROW(GPU_PCIE_RECEIVE, GAUGE, "gpu_pcie_receive_bytes_per_second", NULL, "gpu, uuid",           \
        "What the GPU received over PCI Express within the last 20 ms.")                           \
    ROW(GPU_PCIE_REPLAYS, COUNTER, "gpu_pcie_replays_total", NULL, "gpu, uuid",                    \
        "How often something had to be sent again over PCI Express.")                              \
    ROW(GPU_PCIE_TRANSMIT, GAUGE, "gpu_pcie_transmit_bytes_per_second", NULL, "gpu, uuid",         \
        "What the GPU sent over PCI Express within the last 20 ms.")                               \
    ROW(GPU_PERFORMANCE_STATE, GAUGE, "gpu_performance_state", NULL, "gpu, uuid",                  \
        "Performance state: 0 is the fastest, 15 the slowest.")                                    \
    ROW(GPU_POWER_LIMIT_DEFAULT, GAUGE, "gpu_power_limit_default_watts", "watts", "gpu, uuid",     \
        "Power limit that the GPU starts with.")                                                   \
    ROW(GPU_POWER_LIMIT_ENFORCED, GAUGE, "gpu_power_limit_enforced_watts", "watts", "gpu, uuid",   \
        "The lowest of all power limits that hold.")                                               \
    ROW(GPU_POWER_LIMIT_MAX, GAUGE, "gpu_power_limit_max_watts", "watts", "gpu, uuid",             \
        "Highest power limit that can be set.")                                                    \
    ROW(GPU_POWER_LIMIT_MIN, GAUGE, "gpu_power_limit_min_watts", "watts", "gpu, uuid",             \
        "Lowest power limit that can be set.")                                                     \
    ROW(GPU_POWER_LIMIT, GAUGE, "gpu_power_limit_watts", "watts", "gpu, uuid",                     \
        "Power limit that is set.")                                                                \
    ROW(GPU_POWER_PEAK, GAUGE, "gpu_power_peak_watts", "watts", "gpu, uuid",                       \
        "Highest power within the peak window.")                                                   \
    ROW(GPU_POWER, GAUGE, "gpu_power_watts", "watts", "gpu, uuid", "Power that the GPU takes.")    \
    ROW(GPU_PROCESS_MEMORY, GAUGE, "gpu_process_memory_bytes", "bytes", "comm, gpu, pid, uuid",    \
        "GPU memory of a process; what processes share counts for each.")                          \
    ROW(GPU_PROCESSES, GAUGE, "gpu_processes", NULL, "gpu, uuid",                                  \
        "Processes that use the GPU, for computing or graphics.")                                  \
    ROW(GPU_SM_FREQUENCY, GAUGE, "gpu_sm_frequency_hertz", "hertz", "gpu, uuid",                   \
        "Clock of the GPU's multiprocessors.")                                                     \
    ROW(GPU_SM_FREQUENCY_MAX, GAUGE, "gpu_sm_frequency_max_hertz", "hertz", "gpu, uuid",           \
        "Highest clock that the multiprocessors may take.")                                        \
    ROW(GPU_TEMPERATURE, GAUGE, "gpu_temperature_celsius", "celsius", "gpu, uuid",                 \
        "Temperature of the GPU.")                                                                 \
    ROW(GPU_TEMPERATURE_THRESHOLD, GAUGE, "gpu_temperature_threshold_celsius", "celsius",          \
        "gpu, threshold, uuid",                                                                    \
        "Temperature at which the GPU slows down, shuts down or leaves its normal range, by "      \
        "threshold.")                                                                              \
    ROW(GPU_UTILIZATION_PEAK, GAUGE, "gpu_utilization_peak_ratio", "ratio", "gpu, uuid",           \
        "Highest load of the GPU within the peak window.")                                         \
    ROW(GPU_UTILIZATION, GAUGE, "gpu_utilization_ratio", "ratio", "gpu, uuid",                     \
        "Share of time that the GPU was busy recently.")                                           \
    ROW(GPU_VIDEO_FREQUENCY, GAUGE, "gpu_video_frequency_hertz", "hertz", "gpu, uuid",             \
        "Clock of the video engines.")                                                             \
    ROW(GPU_VIDEO_FREQUENCY_MAX, GAUGE, "gpu_video_frequency_max_hertz", "hertz", "gpu, uuid",     \
        "Highest clock that the video engines may take.")

enum gpu_metric { GPU_METRICS(METRIC_LIST_ID) GPU_N_METRICS };

extern const struct metric_desc gpu_descs[GPU_N_METRICS + 1]; /* ended by a nameless row */

/* Other programs whose names are wanted, too: bits of --collector.jetson.compat. */
enum { COMPAT_TEGRA = 1 << 1, COMPAT_PROTOTYPE = 1 << 2 };

/* Repeats the samples of GPU_MEMORY_USED and _TOTAL under the prototype's names. Whether there is
 * one of what is used. */
bool gpu_add_prototype(struct snapshot *out);
