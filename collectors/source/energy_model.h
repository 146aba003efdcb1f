#pragma once

#include <stdint.h>

#include "collectors/source/peak.h"

/* What a machine's energy went into, from what can be measured:
 *
 * - idle: as much as it takes at rest, the lowest mean power of a second within the last day;
 * - CPU: what is above that, on all that the GPU's own rail does not feed;
 * - GPU: what is above idle on the GPU's rail. Where it has none, CPU time beyond that of an idle
 *   machine is taken to cost what it costs while the GPU rests, and the GPU gets what is above; as
 *   long as that was never seen, the time that the GPU was busy divides.
 */
struct energy_model {
    struct peak rest_watts; /* of the negative power: the least is the largest */
    struct peak gpu_watts;
    struct peak cpus; /* at work, negative as well */
    /* Of the second that is not full yet: */
    double seconds, rest_joules, gpu_joules, cpu_seconds;
    /* Above idle while the GPU rested: */
    double learnt_joules, learnt_seconds;
};

/* An interval. */
struct energy_step {
    double seconds;
    double joules;
    double gpu_joules;  /* part of `joules`; NAN: not measured apart */
    double gpu_busy;    /* share of the time; NAN: not known, taken for none */
    double cpu_seconds; /* that all CPUs worked; NAN: not known */
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
