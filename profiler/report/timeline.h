#pragma once

#include "exporter/core/buf.h"
#include "profiler/analysis/results.h"

/* Appends the time lines of a target: one chart per thing that is worth looking at, its repeats
 * over each other, the phases marked. `max_points` bounds what all lines of a chart have together.
 */
void report_timelines_write(const struct results *results, const struct result *result,
                            size_t max_points, struct buf *out);
