#pragma once

#include "collectors/collector.h"

/* What plugins and other clients pushed, from the store in its environment. */
extern const struct collector push_collector;
