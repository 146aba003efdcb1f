#pragma once

#include "profiler/analysis/results.h"

/* Writes DIR/samples.csv out of DIR/samples.jsonl: one row per sample, one column per series, empty
 * where a sample has no value. The profile is that of the same record and knows all series. */
int report_csv_write(const char *dir, const struct profile *profile, struct error *err);
