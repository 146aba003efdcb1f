#pragma once

#include "collectors/collector.h"
#include "collectors/container/metrics.h"
#include "collectors/container/set.h"

/* What one container used. */
struct container_use {
    double cpu_seconds;
    double lifetime_seconds;
    double joules;
};

/* What containers that are gone have used, by image: also those that came and went between two
 * scrapes. A zeroed struct has seen none. */
struct container_finished {
    struct container_finished_row {
        char *image;
        struct labels *labels;
        double n;
        struct container_use use;
        double left_cpu_seconds; /* whose energy is not known yet */
    } * rows;
    size_t n_rows, cap_rows;
};

void container_finished_finish(struct container_finished *finished);

/* Counts one container; images beyond the first 256 are counted as "other". `left_cpu_seconds`
 * of its CPU time are without their energy so far. */
void container_finished_count(struct container_finished *finished, const char *image,
                              const struct container_use *use, double left_cpu_seconds);

/* `energy`: that is measured here. */
void container_finished_add(const struct container_finished *finished,
                            const struct metric_desc *descs, bool energy, struct snapshot *out);

/* Whose the measured energy was. What no container can be said to have used is shared or idle, so
 * that all of them together are what was measured. */
struct container_energy;

struct container_energy *container_energy_create(const struct collector_env *env);
void container_energy_destroy(struct container_energy *energy); /* accepts NULL */

/* Accounts for what was measured since the last time, once a second or (`at_once`) a little more
 * often; the containers know their CPU time. */
void container_energy_step(struct container_energy *energy, const struct container_set *set,
                           struct container_finished *finished, bool at_once, int64_t now_ns);

/* CPU time of a container that is gone that no energy was found for so far. */
double container_energy_left(const struct container_energy *energy,
                             const struct container *container);

/* Adds the series of containers and the rest; false, and nothing, before anything was measured. */
bool container_energy_add(const struct container_energy *energy, const struct container_set *set,
                          const struct metric_desc *descs, struct snapshot *out);
