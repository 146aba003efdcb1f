#pragma once

#include "exporter/core/exposition.h"
#include "exporter/engine.h"

struct daemon;

/* What waap says of itself. */

/* All descriptions, NULL-terminated: for --list-metrics. */
extern const struct metric_desc *const self_metrics_all[];

/* The samples for one scrape: how its collectors did, the build, HTTP, reloads. On the loop thread.
 * NULL when memory is out. */
struct exposition_part *self_metrics_part(const struct daemon *daemon,
                                          const struct engine_scrape *scrape);
