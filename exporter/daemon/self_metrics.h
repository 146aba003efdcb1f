#pragma once

#include "exporter/engine/engine.h"
#include "exporter/metrics/exposition.h"

struct daemon;

/* The metrics of waap itself. */

/* Their descriptions, ended by a nameless row: for --list-metrics. */
extern const struct metric_desc self_metrics[];

/* Memory that is kept from scrape to scrape. */
struct self_metrics;
struct self_metrics *self_metrics_create(const struct engine *engine);
void self_metrics_destroy(struct self_metrics *self); /* accepts NULL */

/* The part for one scrape: success of its collectors, build, HTTP, reloads. On the loop thread. */
struct exposition_part *self_metrics_part(const struct daemon *daemon,
                                          const struct engine_scrape *scrape);
