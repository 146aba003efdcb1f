#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/error.h"
#include "exporter/metrics/labels.h"

/* One change that a peer requests, as the parsers (JSON lines, the text format, protobuf) pass it
 * to the store. All pointers are borrowed. */

/* Limits of a push. A batch is applied while the event loop waits: PUSH_MAX_UPDATES
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
    PUSH_UNSAID, /* not given: as at first use */
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
    PUSH_TOTAL,   /* counted since the peer's start: add the difference to the last such total */
    PUSH_OBSERVE, /* each value goes into a histogram */
};

struct push_owner;

struct push_update {
    struct push_owner *owner; /* NULL: the batch's. Only with PUSH_MERGE */
    const char *name;
    const char *help;           /* NULL: not given */
    const struct label *labels; /* sorted by name, none empty, no name twice */

    /* Of a counter, gauge, rate, untyped: one value. PUSH_OBSERVE: any number. Otherwise, of a
     * histogram or summary: one figure per bound (cumulative counts, or the
     * quantiles' values), then count, then sum. */
    const double *values;
    const double *bounds; /* of buckets without +Inf, or quantiles, ascending; NULL: not given */

    int64_t ttl_ms; /* PUSH_TTL_DEFAULT, or how long the series outlives its last update; 0: ever */
    uint32_t n_labels, n_values, n_bounds;
    uint32_t index; /* of the object or line, from 1, for messages; 0: not given */
    enum push_type type : 8;
    enum push_op op : 8;
};

_Static_assert(sizeof(void *) != 8 || sizeof(struct push_update) == 80, "kept small");

/* Sets the error of a batch with too many updates; -EFBIG. */
int push_update_fail_many(struct error *err);

/* Limit of the bytes that a parsed push takes beside its text of at most `max_text` bytes: together
 * less than three times the text. */
static inline size_t push_memory_limit(size_t max_text) {
    enum { ALWAYS = 1 << 20 };
    return max_text / 2 * 3 + ALWAYS;
}

#define PUSH_TTL_DEFAULT INT64_C(-1)

/* "counter", "gauge", …, for messages and the API. */
const char *push_type_name(enum push_type type);
