#pragma once

#include "collectors/collector.h"
#include "collectors/container/metrics.h"
#include "collectors/container/set.h"

/* The usage of one container. */
struct container_use {
    double cpu_seconds;
    double lifetime_seconds;
    double joules;
};

/* The usage of containers that have ended, by image: also of those that lived between two scrapes.
 * A zeroed struct is empty. */
struct container_finished {
    struct container_finished_row {
        char *image;
        struct labels *labels;
        double n;
        struct container_use use;
        double left_cpu_seconds; /* not attributed yet */
    } * rows;
    size_t n_rows, cap_rows;
};

void container_finished_finish(struct container_finished *finished);

/* Counts one container; images beyond the first 256 are counted as "other". The energy for
 * `left_cpu_seconds` of its CPU time is not attributed yet. */
void container_finished_count(struct container_finished *finished, const char *image,
                              const struct container_use *use, double left_cpu_seconds);

/* `energy`: whether energy is measured. */
void container_finished_add(const struct container_finished *finished,
                            const struct metric_desc *descs, bool energy, struct snapshot *out);

/* Attributes the measured energy to containers. The rest is shared or idle, so that the sum is the
 * measured energy. */
struct container_energy;

struct container_energy *container_energy_create(const struct collector_env *env);
void container_energy_destroy(struct container_energy *energy); /* accepts NULL */

/* Attributes the energy measured since the last time, once a second or (`at_once`) a little more
 * often. The CPU time of the containers must be up to date. */
void container_energy_step(struct container_energy *energy, const struct container_set *set,
                           struct container_finished *finished, bool at_once, int64_t now_ns);

/* The CPU time of an ended container whose energy is not attributed yet. */
double container_energy_left(const struct container_energy *energy,
                             const struct container *container);

/* Adds all series; false, without any, as long as nothing was measured. */
bool container_energy_add(const struct container_energy *energy, const struct container_set *set,
                          const struct metric_desc *descs, struct snapshot *out);
