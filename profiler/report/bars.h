#pragma once

#include "exporter/core/buf.h"
#include "profiler/analysis/results.h"

/* Plots of measures rather than of samples. */

/* The measures that a page shows first, in order, as far as a target has them. */
struct headline {
    const struct measure *measure;
    char title[96];
    const struct measure_stat *stat; /* the one that counts */
};
enum { MAX_HEADLINES = 16 };
size_t headlines_find(const struct measures *measures, struct headline ret[MAX_HEADLINES]);

/* How a measure's values are spread, with its quantiles marked; nothing where only the runs are
 * known or all values are the same. */
void report_distribution_write(const struct headline *headline, struct buf *out);

/* The values of the runs on one line, as wide as they differ but ten percent at least. */
void report_strip_write(const struct headline *headline, struct buf *out);

/* Each headline measure over all targets. */
void report_comparison_write(const struct results *results, struct buf *out);

/* Each headline measure over the values of the one numeric knob that a sweep has turned; nothing
 * for other sweeps. */
void report_sweep_write(const struct results *results, struct buf *out);
