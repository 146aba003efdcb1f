#pragma once

#include <errno.h>
#include <stdlib.h>

#include "collectors/collectors.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"

/* Collectors that misbehave on request. They are linked with the daemon's own main into waap-fake,
 * so that end-to-end tests meet the real engine. */
extern const struct collector collector_absent;
extern const struct collector collector_bench;
extern const struct collector collector_fail;
extern const struct collector collector_garbage;
extern const struct collector collector_hang;
extern const struct collector collector_sampled;
extern const struct collector collector_slow;
extern const struct collector collector_zoo;
