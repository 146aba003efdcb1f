#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/waap/plugin.h"

enum { WAAP_CACHE_LINE = 64 };

enum waap_call { CALL_NONE, CALL_INC, CALL_ADD, CALL_SET, CALL_OBSERVE };

/* A series. What is recorded is a few atomic words on cache lines of their own; all else changes
 * under waap_lock only. */
struct waap_metric {
    _Alignas(WAAP_CACHE_LINE) _Atomic uint64_t whole; /* increments by one */
    _Atomic double rest;       /* a counter's other additions, a gauge, a histogram's sum */
    _Atomic uint64_t *buckets; /* n_bounds + 1 of them, not cumulative */
    const double *bounds;
    size_t n_bounds;
    _Atomic enum waap_type type;
    atomic_bool by_use; /* the first record decided the type */
    atomic_bool is_set; /* a gauge has a value */

    _Alignas(WAAP_CACHE_LINE) char *name;
    char *help;   /* NULL: none */
    char *labels; /* a JSON object, NULL: none */
    double ttl_seconds;
    struct waap_metric *next;
    /* One per waap_metric_new; prom.h's take theirs back. 0: the name is free for another type, and
     * the series begins without a value when it is created again. */
    atomic_uint n_refs;

    /* What was recorded before it was destroyed: on the wire, totals go on. */
    uint64_t base_whole;
    double base_rest;
    uint64_t *base_buckets;

    /* The first record that was dropped. */
    _Atomic enum waap_call wrong_call;
    _Atomic double wrong_value;
    bool wrong_told;

    /* As last sent on this connection. */
    bool declared;
    uint64_t sent_whole;
    double sent_rest;
    uint64_t sent_ms;
    uint64_t refused_ms; /* when the exporter last refused it, 0: never */
};

extern struct waap_metric *waap_metrics;
extern _Atomic uint64_t waap_n_dropped;

/* How many the application has; how many it has destroyed. waap_lock is held. */
size_t waap_metrics_count(size_t *ret_destroyed);

/* As waap_metric_new, for a series of the library itself: there is room for it when the application
 * has taken all, and nobody is told where it cannot be. */
struct waap_metric *waap_metric_own(const struct waap_metric_spec *spec);

/* A value that belongs together, as near as atomic words allow. */
struct waap_reading {
    uint64_t whole; /* a histogram's count */
    double rest;
};

/* As the exporter gets it. */
struct waap_reading waap_metric_read(struct waap_metric *metric);

/* A gauge without a value, or a metric without a type: it is not sent. */
static inline bool waap_metric_is_empty(struct waap_metric *metric) {
    enum waap_type type = atomic_load(&metric->type);
    return type == WAAP_BY_USE || (type == WAAP_GAUGE && !atomic_load(&metric->is_set));
}

/* Whether it differs from what was sent. */
bool waap_metric_changed(struct waap_metric *metric);

/* A dropped record of a metric of which none was reported yet, as a text that the caller frees;
 * NULL: there is none. */
char *waap_metric_mistake(void);

/* All series as if nothing had been sent. With `zero`, as if nothing had been recorded either. */
void waap_metrics_forget(bool zero);

/* Names and values in turn as a JSON object, sorted; NULL where there are none. False: no memory or
 * EINVAL. */
bool waap_labels_render(const char *const *labels, char **ret_labels);
