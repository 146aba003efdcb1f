#pragma once

#include "collectors/source/metric_list.h"

/* All that the `nvml` collector may emit under NVIDIA's name. */
#define NVML_METRICS(ROW)                                                                          \
    ROW(NVML_NVIDIA_COMPUTE_MODE, GAUGE, "nvidia_compute_mode", NULL, "gpu, uuid",                 \
        "Processes that may compute: 0 any, 2 none, 3 one.")                                       \
    ROW(NVML_NVIDIA_ECC_ENABLED, GAUGE, "nvidia_ecc_enabled", NULL, "gpu, uuid",                   \
        "Whether memory errors are corrected (1) or not (0).")                                     \
    ROW(NVML_NVIDIA_ECC_ERRORS, COUNTER, "nvidia_ecc_errors_total", NULL,                          \
        "counter, gpu, kind, uuid",                                                                \
        "Memory errors: volatile since the driver was loaded, aggregate over the GPU's life.")     \
    ROW(NVML_NVIDIA_IMPOSSIBLE_READINGS, COUNTER, "nvidia_impossible_readings_total", NULL,        \
        "gpu, uuid", "Answers of the driver that cannot be true and were dropped.")                \
    ROW(NVML_NVIDIA_MIG_ENABLED, GAUGE, "nvidia_mig_enabled", NULL, "gpu, uuid",                   \
        "Whether the GPU can be split into instances (1) or not (0).")                             \
    ROW(NVML_NVIDIA_MIG_INFO, INFO, "nvidia_mig_info", NULL,                                       \
        "compute_instance, gpu, gpu_instance, mig_uuid, name, uuid",                               \
        "What instances the GPU is split into; always 1.")                                         \
    ROW(NVML_NVIDIA_MIG_MEMORY_TOTAL, GAUGE, "nvidia_mig_memory_total_bytes", "bytes",             \
        "gpu, mig_uuid, uuid", "Memory of an instance.")                                           \
    ROW(NVML_NVIDIA_MIG_MEMORY_USED, GAUGE, "nvidia_mig_memory_used_bytes", "bytes",               \
        "gpu, mig_uuid, uuid", "Memory that is allocated in an instance.")                         \
    ROW(NVML_NVIDIA_MIG_MULTIPROCESSORS, GAUGE, "nvidia_mig_multiprocessors", NULL,                \
        "gpu, mig_uuid, uuid", "Multiprocessors of an instance.")                                  \
    ROW(NVML_NVIDIA_NVLINK_ACTIVE, GAUGE, "nvidia_nvlink_active", NULL, "gpu, link, uuid",         \
        "Whether an NVLink is up (1) or down (0).")                                                \
    ROW(NVML_NVIDIA_NVLINK_ERRORS, COUNTER, "nvidia_nvlink_errors_total", NULL,                    \
        "gpu, kind, link, uuid", "Errors on an NVLink.")                                           \
    ROW(NVML_NVIDIA_NVLINK_RECEIVE, COUNTER, "nvidia_nvlink_receive_bytes_total", "bytes",         \
        "gpu, link, uuid", "What came in over an NVLink.")                                         \
    ROW(NVML_NVIDIA_NVLINK_TRANSMIT, COUNTER, "nvidia_nvlink_transmit_bytes_total", "bytes",       \
        "gpu, link, uuid", "What went out over an NVLink.")                                        \
    ROW(NVML_NVIDIA_NVML_RETURN_CODE, GAUGE, "nvidia_nvml_return_code", NULL, "gpu, uuid",         \
        "0, or the NVML code that kept something of the GPU from being read.")                     \
    ROW(NVML_NVIDIA_PERSISTENCE_MODE, GAUGE, "nvidia_persistence_mode", NULL, "gpu, uuid",         \
        "Whether the driver stays loaded while no process uses the GPU (1) or not (0).")           \
    ROW(NVML_NVIDIA_REMAPPED_ROWS_FAILED, GAUGE, "nvidia_remapped_rows_failed", NULL, "gpu, uuid", \
        "Whether a row of memory could not be replaced (1) or not (0).")                           \
    ROW(NVML_NVIDIA_REMAPPED_ROWS_PENDING, GAUGE, "nvidia_remapped_rows_pending", NULL,            \
        "gpu, uuid", "Whether rows of memory will be replaced by the next reset (1) or not (0).")  \
    ROW(NVML_NVIDIA_REMAPPED_ROWS, COUNTER, "nvidia_remapped_rows_total", NULL, "gpu, kind, uuid", \
        "Rows of memory replaced by spare ones.")                                                  \
    ROW(NVML_NVIDIA_RETIRED_PAGES_PENDING, GAUGE, "nvidia_retired_pages_pending", NULL,            \
        "gpu, uuid", "Whether pages of memory will be given up by the next reset (1) or not (0).") \
    ROW(NVML_NVIDIA_RETIRED_PAGES, COUNTER, "nvidia_retired_pages_total", NULL,                    \
        "cause, gpu, uuid", "Pages of memory given up after errors.")                              \
    ROW(NVML_NVIDIA_SUSPENDED, GAUGE, "nvidia_suspended", NULL, "gpu, uuid",                       \
        "Whether the GPU is powered down (1) and left alone, or not (0).")                         \
    ROW(NVML_NVIDIA_THROTTLE_ACTIVE, GAUGE, "nvidia_throttle_active", NULL, "gpu, reason, uuid",   \
        "Whether a reason keeps the clocks down at the moment (1) or not (0).")                    \
    ROW(NVML_NVIDIA_THROTTLE_SECONDS, COUNTER, "nvidia_throttle_seconds_total", "seconds",         \
        "gpu, reason, uuid", "Time for which a reason has kept the clocks down.")                  \
    ROW(NVML_NVIDIA_XID_ERRORS, COUNTER, "nvidia_xid_errors_total", NULL, "gpu, uuid, xid",        \
        "Errors that the driver reported, by NVIDIA's Xid code.")

enum nvml_metric { NVML_METRICS(METRIC_LIST_ID) NVML_N_METRICS };

extern const struct metric_desc nvml_descs[NVML_N_METRICS + 1]; /* ended by a nameless row */
