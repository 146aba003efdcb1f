#pragma once

#include <stdint.h>

#include "collectors/source/peak.h"

/* Splits a machine's measured energy:
 *
 * - idle: at the lowest mean power of a second within the last day;
 * - CPU: above idle, on all rails but the GPU's;
 * - GPU: above idle on the GPU's rail. If it has no rail, CPU time beyond that of an idle machine
 *   is assumed to cost as much as while the GPU is idle, and the GPU gets the rest. Until that cost
 *   has been seen, the split follows the time that the GPU was busy.
 */
struct energy_model {
    struct peak rest_watts; /* negated, so that the peak is the minimum */
    struct peak gpu_watts;
    struct peak cpus; /* busy, negated as well */
    /* Of the current second: */
    double seconds, rest_joules, gpu_joules, cpu_seconds;
    /* Above idle while the GPU was idle: */
    double learnt_joules, learnt_seconds;
};

/* An interval. */
struct energy_step {
    double seconds;
    double joules;
    double gpu_joules;  /* part of `joules`; NAN: not measured separately */
    double gpu_busy;    /* share of the time; NAN: not known, counts as 0 */
    double cpu_seconds; /* of all CPUs; NAN: not known */
};

/* Always adds up to the step's joules; none is below zero. */
struct energy_split {
    double idle;
    double cpu;
    double gpu;
};

void energy_model_init(struct energy_model *model);

/* Learns from the step, which ended at `now_ns` of the monotonic clock, and splits it. */
struct energy_split energy_model_split(struct energy_model *model, int64_t now_ns,
                                       const struct energy_step *step);
