#include "profiler/analysis/timeline.h"

#include <math.h>
#include <stdlib.h>

static struct timeline_bin merged(const struct timeline_bin *a, const struct timeline_bin *b) {
    return (struct timeline_bin){
        .t = b->t,
        .last = b->last,
        .sum = a->sum + b->sum,
        .min = fmin(a->min, b->min),
        .max = fmax(a->max, b->max),
        .n = a->n + b->n,
    };
}

static void halve(struct timeline *timeline) {
    for (size_t i = 0; i < TIMELINE_BINS / 2; i++) {
        timeline->bins[i] = merged(&timeline->bins[2 * i], &timeline->bins[2 * i + 1]);
    }
    timeline->n_bins = TIMELINE_BINS / 2;
    timeline->per_bin *= 2;
}

static bool grow(struct timeline *timeline) {
    size_t cap = timeline->cap_bins > 0 ? 2 * timeline->cap_bins : 16;
    struct timeline_bin *bins = reallocarray(timeline->bins, cap, sizeof(*bins));
    if (bins == NULL) {
        return false;
    }
    timeline->bins = bins;
    timeline->cap_bins = cap;
    return true;
}

void timeline_add(struct timeline *timeline, double t, double value) {
    struct timeline_bin bin = {t, value, value, value, value, 1};
    if (timeline->failed) {
        return;
    }
    timeline->per_bin = timeline->per_bin > 0 ? timeline->per_bin : 1;
    size_t n = timeline->n_bins;
    if (n > 0 && timeline->bins[n - 1].n < timeline->per_bin) {
        timeline->bins[n - 1] = merged(&timeline->bins[n - 1], &bin);
        return;
    }
    if (timeline->n_bins == TIMELINE_BINS) {
        halve(timeline);
    }
    if (timeline->n_bins == timeline->cap_bins && !grow(timeline)) {
        timeline->failed = true;
        return;
    }
    timeline->bins[timeline->n_bins++] = bin;
}

void timeline_finish(struct timeline *timeline) {
    free(timeline->bins);
    *timeline = (struct timeline){0};
}
