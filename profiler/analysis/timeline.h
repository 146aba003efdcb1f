#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A value over time in bounded memory, for plots: when TIMELINE_BINS are full, neighbours merge. A
 * zeroed struct is empty. */
struct timeline {
    struct timeline_bin *bins;
    size_t n_bins, cap_bins;
    size_t per_bin; /* samples that make a bin */
    bool failed;    /* memory was out; check once at the end */
};

struct timeline_bin {
    double t;    /* of its last sample */
    double last; /* for counters */
    double sum;
    double min, max;
    size_t n;
};

enum { TIMELINE_BINS = 512 };

/* Adds one; `t` never goes back. */
void timeline_add(struct timeline *timeline, double t, double value);

/* Frees it and leaves it empty. */
void timeline_finish(struct timeline *timeline);
