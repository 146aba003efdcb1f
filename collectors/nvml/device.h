#pragma once

#include <stdint.h>

#include "collectors/collector.h"
#include "collectors/nvml/library.h"
#include "collectors/nvml/metrics.h"
#include "collectors/source/gpu_metrics.h"
#include "exporter/metrics/labels.h"

/* What holds for all GPUs. */
struct nvml_config {
    const char *procfs;
    const char *sysfs;
    int64_t peak_window_ns;
    int64_t max_gap_ns; /* samples further apart are not joined */
    size_t max_processes;
    bool processes;        /* one series per process */
    bool pcie_throughput;  /* takes 20 ms per direction */
    bool integrated;       /* a Jetson's own GPU, as GPU 0: only what its files lack */
    struct energy *energy; /* where to report it; or NULL */
    const char *uuid;      /* of a GPU that NVML gives none; may be NULL */
};

enum { NVML_N_PARTS = 6, NVML_MAX_TEXT = 96 };

/* One GPU. Its metrics are collected by parts, each with its own state. */
struct nvml_device {
    unsigned index;
    const struct nvml_library *library;
    const struct nvml_config *config;
    struct nvml_handle *handle;
    char name[NVML_MAX_TEXT];
    char uuid[NVML_MAX_TEXT];
    struct labels *labels; /* gpu, uuid */
    struct labels *info;
    enum nvml_verdict state; /* NVML_GOOD, NVML_LOST or NVML_NO_DRIVER */
    unsigned code;           /* the latest that was not good, of this collection */
    double n_impossible;
    int64_t busy_ns; /* when it was last seen at work, for parts to set */
    int64_t rest_until_ns;
    char *runtime_status;   /* path of the kernel's file, if the GPU may power down by itself */
    struct nvml_xids *xids; /* NULL: not opened, as the GPU was lost from the start */
    void *parts[NVML_N_PARTS];
};

/* One topic, as the parts of the collectors `host` and `jetson`. What a part does not need is NULL.
 */
struct nvml_part {
    bool integrated;   /* also of a Jetson's own GPU */
    size_t state_size; /* of the part's struct, zeroed before `open` */
    void (*open)(void *state, const struct nvml_device *device);
    void (*sample)(struct nvml_device *device, void *state, int64_t now_ns);
    void (*collect)(struct nvml_device *device, void *state, struct snapshot *out);
    void (*close)(void *state); /* frees what the struct holds */
};

#define NVML_PARTS(PART)                                                                           \
    PART(call)                                                                                     \
    PART(energy)                                                                                   \
    PART(link)                                                                                     \
    PART(mig)                                                                                      \
    PART(process)                                                                                  \
    PART(sampler)

#define NVML_PART_DECLARE(name) extern const struct nvml_part nvml_##name##_part;
NVML_PARTS(NVML_PART_DECLARE)

/* Identifies the GPU and opens the parts. A GPU that is already lost is no failure. */
int nvml_device_init(struct nvml_device *device, const struct nvml_library *library,
                     const struct nvml_config *config, unsigned index, struct error *err);
void nvml_device_finish(struct nvml_device *device);

/* Both do nothing to a GPU that is lost, or that is powered down and would be woken. */
void nvml_device_sample(struct nvml_device *device, int64_t now_ns);
void nvml_device_collect(struct nvml_device *device, struct snapshot *out);

/* For parts: whether an answer can be used. Sets `*never` (may be NULL) if asking again is
 * pointless, and records the state of the GPU that the code implies. */
bool nvml_device_check(struct nvml_device *device, unsigned code, bool *never);

/* For parts: adds a value from 0 to `max`, leaves NAN out, counts the rest as impossible. `labels`
 * NULL: those of the GPU. */
void nvml_device_add(struct nvml_device *device, struct snapshot *out,
                     const struct metric_desc *desc, const struct labels *labels, double value,
                     double max);

/* More than any GPU has; what lies above is no reading. */
#define NVML_MAX_BYTES 0x1p50
#define NVML_MAX_WATTS 1e5

/* For parts: the bytes that are used, free, there and reserved, of a GPU or an instance; NAN: not
 * known. Returns the driver's code. */
enum { NVML_MEMORY_VALUES = 4 };
unsigned nvml_read_memory(const struct nvml_library *library, struct nvml_handle *handle,
                          double ret_values[static NVML_MEMORY_VALUES]);

/* A value of one of NVML's types as a number; NAN for a type that we do not know. */
double nvml_read_number(unsigned type, const union nvml_value *value);
