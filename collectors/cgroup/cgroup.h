#pragma once

#include "collectors/collector.h"

/* Cgroups near the root: what slices, services and users take together. */
extern const struct collector cgroup_collector;
