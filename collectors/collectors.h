#pragma once

#include "collectors/collector.h"

/* All collectors of this build, sorted by name, NULL-terminated. */
extern const struct collector *const collectors_all[];
