#pragma once

#include "exporter/core/buf.h"
#include "profiler/record/read.h"

/* Appends the key of the histogram that a series is a part of, `app.inference_seconds{stage="a"}`
 * for `app.inference_seconds{stage="a",le="0.1"}` and for `app.inference_seconds_sum{stage="a"}`,
 * and yields the upper bound of a bucket (NaN for the other parts). -EINVAL for what is no part of
 * one. */
int histogram_key_of(const struct record_series *series, struct buf *out, double *ret_le);
