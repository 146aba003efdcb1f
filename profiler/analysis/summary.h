#pragma once

#include "exporter/core/buf.h"
#include "profiler/analysis/results.h"

/* Appends summary.json: every measure of every target with its statistics, the gates' verdicts, and
 * for sweeps the table from knobs to measures. */
void summary_write(const struct results *results, struct buf *out);
