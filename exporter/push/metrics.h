#pragma once

#include "exporter/metrics/snapshot.h"
#include "exporter/push/store.h"

/* The metrics waap_push_*. */

/* All descriptions, NULL-terminated. */
extern const struct metric_desc *const push_metrics_all[];

/* Of groups; the collector `push` lists them. */
extern const struct metric_desc push_time, push_failure_time;

/* The labels of the reasons for refusals. A zeroed struct is empty. */
struct push_metrics {
    struct labels *reasons[PUSH_REASONS];
};

void push_metrics_finish(struct push_metrics *metrics);

/* Adds them; `saved_seconds` is when the state file was last written, 0: never. */
void push_metrics_collect(struct push_metrics *metrics, const struct push_stats *stats,
                          double saved_seconds, struct snapshot *out);
