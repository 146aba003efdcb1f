#pragma once

#include "collectors/collector.h"
#include "collectors/container/metrics.h"
#include "collectors/container/set.h"

/* Attributes the measured energy to containers. The rest is shared or idle, so that the sum is the
 * measured energy. Also counts the usage of containers that have ended, by image: also of those
 * that lived between two scrapes. */
struct container_energy;

struct container_energy *container_energy_create(const struct collector_env *env,
                                                 const struct container_set *set);
void container_energy_destroy(struct container_energy *energy); /* accepts NULL */

/* Attributes the energy measured since the last time, once a second or (`at_once`) a little more
 * often. The CPU time of the containers must be up to date. */
void container_energy_step(struct container_energy *energy, bool at_once, int64_t now_ns);

/* Counts a container that has ended; images after the first 256 are counted as "other". */
void container_energy_count_ended(struct container_energy *energy,
                                  const struct container *container);

/* Adds all series; those of energy only if any was measured. */
void container_energy_add(const struct container_energy *energy, const struct metric_desc *descs,
                          struct snapshot *out);
