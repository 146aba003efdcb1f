#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/error.h"
#include "exporter/metrics/labels.h"

/* What a peer wants changed, as the readers of its language (JSON lines, the text format, protobuf)
 * hand it to the store. All pointers are borrowed. */

/* Limits of what a peer can say. A batch is applied while the event loop waits: PUSH_MAX_UPDATES
 * new series take about 5 ms. An update with many labels, values or bounds counts as several. */
enum {
    PUSH_MAX_UPDATES = 4000, /* of a batch */
    PUSH_MAX_LABELS = 32,    /* of a series, without those of its owner */
    PUSH_MAX_NAME = 256,     /* bytes, of metrics and labels */
    PUSH_MAX_VALUE = 1024,   /* of a label */
    PUSH_MAX_HELP = 1024,
    PUSH_MAX_BUCKETS = 200,
};

enum push_type {
    PUSH_UNSAID, /* the peer did not say: as it was at first use */
    PUSH_UNTYPED,
    PUSH_COUNTER,
    PUSH_GAUGE,
    PUSH_HISTOGRAM,
    PUSH_SUMMARY,
    PUSH_RATE, /* x exports the counter x_total and the gauge x, its mean over the last 10 s */
};

enum push_op {
    PUSH_SET,     /* the value becomes this */
    PUSH_INC,     /* add to it */
    PUSH_TOTAL,   /* counted since the peer's start: add what is beyond the last such figure */
    PUSH_OBSERVE, /* each value goes into a histogram */
};

struct push_owner;

struct push_update {
    struct push_owner *owner; /* whose it is; NULL: the batch's. Only where series merge */
    const char *name;
    const char *help;           /* NULL: not said */
    const struct label *labels; /* sorted by name, none empty, no name twice */

    /* Of a counter, gauge, rate, untyped: one value. PUSH_OBSERVE: any number. Otherwise, of a
     * histogram or summary: one figure per bound (cumulative counts, or the
     * quantiles' values), then count, then sum. */
    const double *values;
    const double *bounds; /* of buckets without +Inf, or quantiles, ascending; NULL: not said */

    int64_t ttl_ms; /* PUSH_TTL_DEFAULT, or how long the series outlives its last update; 0: ever */
    uint32_t n_labels, n_values, n_bounds;
    uint32_t index; /* which of the peer's objects or lines, from 1; 0: not said; for messages */
    enum push_type type : 8;
    enum push_op op : 8;
};

_Static_assert(sizeof(void *) != 8 || sizeof(struct push_update) == 80, "kept small");

/* Words that there are more updates than a batch may have; -EFBIG. */
int push_update_fail_many(struct error *err);

/* Most bytes that the content of a push may take beside its text, which has `max_text` bytes at
 * most: together less than three times the text. */
static inline size_t push_memory_limit(size_t max_text) {
    enum { ALWAYS = 1 << 20 };
    return max_text / 2 * 3 + ALWAYS;
}

#define PUSH_TTL_DEFAULT INT64_C(-1)

/* "counter", "gauge", …; what messages and the interface for programs say. */
const char *push_type_name(enum push_type type);
