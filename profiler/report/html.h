#pragma once

#include "exporter/core/buf.h"
#include "profiler/analysis/results.h"

/* Appends report.html: one page with everything in it, for any browser and without a network. The
 * plots are drawn already, so that it also works where scripts are forbidden. */
void report_html_write(const struct results *results, struct buf *out);
