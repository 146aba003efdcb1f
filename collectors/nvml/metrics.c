#include "collectors/nvml/metrics.h"

#include <stddef.h>

#include "collectors/source/gpu_metrics.h"
#include "collectors/source/metric_list.h"

const struct metric_desc nvml_descs[NVML_N_METRICS] = {
    [NVML_NVIDIA_COMPUTE_MODE] = {"nvidia_compute_mode",
                                  "Who may compute: 0 everybody, 2 nobody, 3 one process.",
                                  METRIC_GAUGE, NULL, "gpu, uuid"},
    [NVML_NVIDIA_ECC_ENABLED] = {"nvidia_ecc_enabled",
                                 "Whether memory errors are corrected (1) or not (0).",
                                 METRIC_GAUGE, NULL, "gpu, uuid"},
    [NVML_NVIDIA_ECC_ERRORS] =
        {"nvidia_ecc_errors_total",
         "Memory errors: volatile since the driver was loaded, aggregate over the GPU's life.",
         METRIC_COUNTER, NULL, "counter, gpu, kind, uuid"},
    [NVML_NVIDIA_IMPOSSIBLE_READINGS] =
        {"nvidia_impossible_readings_total",
         "Answers of the driver that cannot be true and were dropped.", METRIC_COUNTER, NULL,
         "gpu, uuid"},
    [NVML_NVIDIA_MIG_ENABLED] = {"nvidia_mig_enabled",
                                 "Whether the GPU can be split into instances (1) or not (0).",
                                 METRIC_GAUGE, NULL, "gpu, uuid"},
    [NVML_NVIDIA_MIG_INFO] = {"nvidia_mig_info", "What instances the GPU is split into; always 1.",
                              METRIC_INFO, NULL,
                              "compute_instance, gpu, gpu_instance, mig_uuid, name, uuid"},
    [NVML_NVIDIA_MIG_MEMORY_TOTAL] = {"nvidia_mig_memory_total_bytes", "Memory of an instance.",
                                      METRIC_GAUGE, "bytes", "gpu, mig_uuid, uuid"},
    [NVML_NVIDIA_MIG_MEMORY_USED] = {"nvidia_mig_memory_used_bytes",
                                     "Memory that is allocated in an instance.", METRIC_GAUGE,
                                     "bytes", "gpu, mig_uuid, uuid"},
    [NVML_NVIDIA_MIG_MULTIPROCESSORS] = {"nvidia_mig_multiprocessors",
                                         "Multiprocessors of an instance.", METRIC_GAUGE, NULL,
                                         "gpu, mig_uuid, uuid"},
    [NVML_NVIDIA_NVLINK_ACTIVE] = {"nvidia_nvlink_active",
                                   "Whether an NVLink is up (1) or down (0).", METRIC_GAUGE, NULL,
                                   "gpu, link, uuid"},
    [NVML_NVIDIA_NVLINK_ERRORS] = {"nvidia_nvlink_errors_total", "Errors on an NVLink.",
                                   METRIC_COUNTER, NULL, "gpu, kind, link, uuid"},
    [NVML_NVIDIA_NVLINK_RECEIVE] = {"nvidia_nvlink_receive_bytes_total",
                                    "What came in over an NVLink.", METRIC_COUNTER, "bytes",
                                    "gpu, link, uuid"},
    [NVML_NVIDIA_NVLINK_TRANSMIT] = {"nvidia_nvlink_transmit_bytes_total",
                                     "What went out over an NVLink.", METRIC_COUNTER, "bytes",
                                     "gpu, link, uuid"},
    [NVML_NVIDIA_NVML_RETURN_CODE] =
        {"nvidia_nvml_return_code",
         "0, or the NVML code that kept something of the GPU from being read.", METRIC_GAUGE, NULL,
         "gpu, uuid"},
    [NVML_NVIDIA_PERSISTENCE_MODE] =
        {"nvidia_persistence_mode",
         "Whether the driver stays loaded while nobody uses the GPU (1) or not (0).", METRIC_GAUGE,
         NULL, "gpu, uuid"},
    [NVML_NVIDIA_REMAPPED_ROWS_FAILED] =
        {"nvidia_remapped_rows_failed",
         "Whether a row of memory could not be replaced (1) or not (0).", METRIC_GAUGE, NULL,
         "gpu, uuid"},
    [NVML_NVIDIA_REMAPPED_ROWS_PENDING] =
        {"nvidia_remapped_rows_pending",
         "Whether rows of memory will be replaced by the next reset (1) or not (0).", METRIC_GAUGE,
         NULL, "gpu, uuid"},
    [NVML_NVIDIA_REMAPPED_ROWS] = {"nvidia_remapped_rows_total",
                                   "Rows of memory replaced by spare ones.", METRIC_COUNTER, NULL,
                                   "gpu, kind, uuid"},
    [NVML_NVIDIA_RETIRED_PAGES_PENDING] =
        {"nvidia_retired_pages_pending",
         "Whether pages of memory will be given up by the next reset (1) or not (0).", METRIC_GAUGE,
         NULL, "gpu, uuid"},
    [NVML_NVIDIA_RETIRED_PAGES] = {"nvidia_retired_pages_total",
                                   "Pages of memory given up after errors.", METRIC_COUNTER, NULL,
                                   "cause, gpu, uuid"},
    [NVML_NVIDIA_SUSPENDED] = {"nvidia_suspended",
                               "Whether the GPU is powered down (1) and left alone, or not (0).",
                               METRIC_GAUGE, NULL, "gpu, uuid"},
    [NVML_NVIDIA_THROTTLE_ACTIVE] =
        {"nvidia_throttle_active",
         "Whether a reason keeps the clocks down at the moment (1) or not (0).", METRIC_GAUGE, NULL,
         "gpu, reason, uuid"},
    [NVML_NVIDIA_THROTTLE_SECONDS] = {"nvidia_throttle_seconds_total",
                                      "Time for which a reason has kept the clocks down.",
                                      METRIC_COUNTER, "seconds", "gpu, reason, uuid"},
    [NVML_NVIDIA_XID_ERRORS] = {"nvidia_xid_errors_total",
                                "Errors that the driver reported, by NVIDIA's Xid code.",
                                METRIC_COUNTER, NULL, "gpu, uuid, xid"},
};

_Static_assert(NVML_N_METRICS == 16 + 8, "list all of them");
_Static_assert(GPU_FREQUENCY_MIN == 32 + 16, "list all before it");

const struct metric_desc *const nvml_metrics[] = {
    AT32(gpu_descs, 0), AT16(gpu_descs, 32), AT16(nvml_descs, 0), AT8(nvml_descs, 16), NULL,
};
