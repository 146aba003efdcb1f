#pragma once

#include "exporter/core/buf.h"
#include "profiler/analysis/profile.h"

/* Appends report.html: one page for itself, with plots as SVG, so it works without scripts. */
void report_html_write(const struct profile *profile, struct buf *out);

/* Appends junit.xml: a suite per target, with one case per gate and one for the runs. */
void report_junit_write(const struct profile *profile, struct buf *out);

/* Writes samples.csv: a row per sample, a column per series. The record is read again. */
int report_csv_write(const struct profile *profile, FILE *to, struct error *err);

/* Writes metrics.om: every sample as OpenMetrics with its timestamp and the labels `target` and
 * `run`, for `promtool tsdb create-blocks-from openmetrics`. A long record is thinned to about a
 * million points, one sample per whole number of seconds. */
int report_openmetrics_write(const struct profile *profile, FILE *to, struct error *err);

/* Style sheet and script of report.html, embedded by embed.py. */

extern const char report_css[];
extern const char report_js[];

/* Content-Security-Policy that allows only this style sheet and this script, by their hashes. */
extern const char report_policy[];
