#pragma once

#include "collectors/collector.h"
#include "collectors/container/finished.h"
#include "collectors/container/set.h"

/* Whose the measured energy was. What no container can be said to have used is shared or idle, so
 * that all of them together are what was measured. */
struct container_energy;

/* -ENOMEM. A machine that measures nothing is no failure: there is nothing to add then. */
int container_energy_create(const struct collector_env *env, struct container_energy **ret_energy,
                            struct error *err);
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
