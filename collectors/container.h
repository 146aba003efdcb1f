#pragma once

#include "collectors/collector.h"

/* Containers of every runtime, found by their cgroups. */
extern const struct collector container_collector;
