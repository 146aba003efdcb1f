#pragma once

#include "exporter/core/buf.h"
#include "profiler/analysis/results.h"

/* Appends junit.xml: a suite per target, in it one case per gate and one for the runs themselves.
 */
void report_junit_write(const struct results *results, struct buf *out);
