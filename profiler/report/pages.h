#pragma once

#include "exporter/core/buf.h"
#include "profiler/analysis/results.h"

/* Appends report.html: one page with everything in it, for any browser and without a network. The
 * plots are drawn already, so that it also works where scripts are forbidden. */
void report_html_write(const struct results *results, struct buf *out);

/* Appends junit.xml: a suite per target, in it one case per gate and one for the runs themselves.
 */
void report_junit_write(const struct results *results, struct buf *out);

/* Writes DIR/samples.csv out of DIR/samples.jsonl: one row per sample, one column per series, empty
 * where a sample has no value. The profile is that of the same record and knows all series. */
int report_csv_write(const char *dir, const struct profile *profile, struct error *err);

/* Writes DIR/metrics.om out of DIR/samples.jsonl: every sample as OpenMetrics with its time stamp
 * and the labels `target` and `run`, for `promtool tsdb create-blocks-from openmetrics`. Where that
 * would be more than about a million points, as few samples per whole number of seconds are taken
 * as keep it there. */
int report_openmetrics_write(const char *dir, const struct profile *profile, struct error *err);

/* What the page of a report has beside its content, from profiler/report/ by embed.py. */

extern const char report_css[];
extern const char report_js[];

/* Content-Security-Policy: nothing but this style sheet and this script, known by their hashes. */
extern const char report_policy[];
