#pragma once

#include "exporter/core/buf.h"
#include "profiler/analysis/results.h"

/* The tables of the page. Each appends nothing where it would be empty. */

/* The gates of all targets and how they were judged. */
void report_gates_write(const struct results *results, struct buf *out);

/* The runs of a target, one row each. */
void report_runs_write(const struct result *result, struct buf *out);

/* Every measure of a target with all its statistics. */
void report_measures_write(const struct result *result, struct buf *out);

/* Where and with what the record was made. */
void report_environment_write(const struct results *results, struct buf *out);
