#pragma once

#include <stdint.h>

#include "collectors/collector.h"

/* Containers of all runtimes, found by their cgroups. */
extern const struct collector container_collector;

/* The collector's calls at a given time of the monotonic clock. */
int container_sample_at(void *state, int64_t now_ns);
int container_collect_at(void *state, int64_t now_ns, struct snapshot *out, struct error *err);
