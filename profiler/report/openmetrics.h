#pragma once

#include "profiler/analysis/results.h"

/* Writes DIR/metrics.om out of DIR/samples.jsonl: every sample as OpenMetrics with its time stamp
 * and the labels `target` and `run`, for `promtool tsdb create-blocks-from openmetrics`. Where that
 * would be more than about a million points, as few samples per whole number of seconds are taken
 * as keep it there. */
int report_openmetrics_write(const char *dir, const struct profile *profile, struct error *err);
