#pragma once

#include "collectors/nvml/library.h"
#include "collectors/nvml/metrics.h"
#include "collectors/source/gpu_metrics.h"
#include "exporter/metrics/labels.h"

enum { NVML_MAX_VALUES = 9 };

/* More than any GPU has; what lies above is no reading. */
#define NVML_MAX_BYTES 0x1p50
#define NVML_MAX_WATTS 1e5

struct nvml_call;

/* Asks the driver once: puts the answer's numbers into `values`, NAN for what it does not know, and
 * returns its code. */
typedef unsigned nvml_read_fn(const struct nvml_library *library, struct nvml_handle *device,
                              const struct nvml_call *call, double *values);

/* What one number of the answer is. */
struct nvml_output {
    const struct metric_desc *desc;
    struct label extra[2]; /* labels besides the GPU's */
};

/* One call and what comes of it. */
struct nvml_call {
    nvml_read_fn *read;
    size_t function; /* where in struct nvml_library, for the readers that serve several */
    unsigned kind;
    unsigned counter;
    double times; /* the metric is the answer * times / per */
    double per;
    double max; /* in the metric's unit; what lies above cannot be true */
    struct nvml_output outputs[NVML_MAX_VALUES];
};

/* Functions of the form (device, &value), (device, kind, &value) and (device, &a, &b). */
nvml_read_fn nvml_read_plain;
nvml_read_fn nvml_read_kind;
nvml_read_fn nvml_read_pair;
nvml_read_fn nvml_read_first;
nvml_read_fn nvml_read_utilization;
nvml_read_fn nvml_read_memory;
nvml_read_fn nvml_read_bar1;
nvml_read_fn nvml_read_energy;
nvml_read_fn nvml_read_temperature;
nvml_read_fn nvml_read_memory_temperature;
nvml_read_fn nvml_read_fan;
nvml_read_fn nvml_read_pstate;
nvml_read_fn nvml_read_throttle;
nvml_read_fn nvml_read_violation;
nvml_read_fn nvml_read_ecc;
nvml_read_fn nvml_read_retired;
nvml_read_fn nvml_read_remapped;

/* A value of one of NVML's types as a number; NAN for a type that we do not know. */
double nvml_read_number(unsigned type, const union nvml_value *value);
