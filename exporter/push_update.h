#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/labels.h"

/* What a peer wants changed, as the readers of its language (JSON lines, the text format, protobuf)
 * hand it to the store. All pointers are borrowed. */

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
    const char *help; /* NULL: not said */
    enum push_type type;
    enum push_op op;
    const struct label *labels; /* sorted by name, none empty, no name twice */
    size_t n_labels;

    /* Of a counter, gauge, rate, untyped: one value. PUSH_OBSERVE: any number. Otherwise, of a
     * histogram or summary: one figure per bound (cumulative counts, or the
     * quantiles' values), then count, then sum. */
    const double *values;
    size_t n_values;
    const double *bounds; /* of buckets without +Inf, or quantiles, ascending; NULL: not said */
    size_t n_bounds;

    int64_t ttl_ms; /* PUSH_TTL_DEFAULT, or how long the series outlives its last update; 0: ever */
    bool own;       /* it is ours, of a name that nobody else may push */
    size_t index;   /* which of the peer's objects or lines, from 1; 0: not said; for messages */
};

#define PUSH_TTL_DEFAULT INT64_C(-1)

/* "counter", "gauge", …; what messages and the interface for programs say. */
const char *push_type_name(enum push_type type);
