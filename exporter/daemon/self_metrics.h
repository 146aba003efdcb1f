#pragma once

#include "exporter/engine/engine.h"
#include "exporter/metrics/exposition.h"

struct daemon;

/* What waap says of itself. */

/* All descriptions, NULL-terminated: for --list-metrics. */
extern const struct metric_desc *const self_metrics_all[];

/* What is kept from scrape to scrape; NULL when memory is out. */
struct self_metrics;
struct self_metrics *self_metrics_create(const struct engine *engine);
void self_metrics_destroy(struct self_metrics *self); /* accepts NULL */

/* The samples for one scrape: how its collectors did, the build, HTTP, reloads. On the loop thread.
 * NULL when memory is out. */
struct exposition_part *self_metrics_part(const struct daemon *daemon,
                                          const struct engine_scrape *scrape);
