#pragma once

#include "collectors/collector.h"

/* Cgroups near the root: slices, services and users. */
extern const struct collector cgroup_collector;
