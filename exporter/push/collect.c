#include <string.h>

#include "exporter/core/container_of.h"
#include "exporter/push/metrics.h"
#include "exporter/push/store_private.h"

/* Series that take about a millisecond: the event loop should not wait for the lock meanwhile. */
enum { LONG_COLLECTION = 10000 };

static void add_histogram(const struct push_series *series, const double *values,
                          struct snapshot *out) {
    const struct metric_desc *desc = &series->family->desc->main;
    for (size_t i = 0; i < series->buckets->n; i++) {
        snapshot_add_suffixed(out, desc, "_bucket", series->buckets->labels[i], values[i]);
    }
    snapshot_add_suffixed(out, desc, "_sum", series->labels, values[series->n_bounds + 1]);
    snapshot_add_suffixed(out, desc, "_count", series->labels, values[series->n_bounds]);
}

static void add_summary(const struct push_series *series, struct snapshot *out) {
    const struct metric_desc *desc = &series->family->desc->main;
    for (size_t i = 0; i < series->buckets->n; i++) {
        snapshot_add(out, desc, series->buckets->labels[i], series->values[i]);
    }
    snapshot_add_suffixed(out, desc, "_sum", series->labels, series->values[series->n_bounds + 1]);
    snapshot_add_suffixed(out, desc, "_count", series->labels, series->values[series->n_bounds]);
}

/* Of two families of one name the one that was made first speaks for both. */
static const struct metric_desc *desc_of(const struct push_family *family) {
    const struct push_family *twin = family->twin;
    bool second = twin != NULL && twin->number < family->number;
    return second ? &twin->desc->main : &family->desc->main;
}

static void add_rate(const struct push_series *series, int64_t now_ms, struct snapshot *out) {
    double mean;
    if (push_rate_mean(series->rate, now_ms, &mean)) {
        snapshot_add(out, desc_of(series->family), series->labels, mean);
    }
}

static void add_series(const struct push_series *series, int64_t now_ms, struct snapshot *out) {
    double values[PUSH_MAX_WORDS];
    switch (series->family->type) {
    case PUSH_HISTOGRAM:
        push_cumulate(series, values);
        add_histogram(series, values, out);
        break;
    case PUSH_SUMMARY:
        add_summary(series, out);
        break;
    case PUSH_RATE:
        add_rate(series, now_ms, out);
        break;
    default:
        snapshot_add(out, desc_of(series->family), series->labels, series->values[0]);
        break;
    }
}

static void add_family(struct push_store *store, struct push_family *family, int64_t now_ms,
                       struct snapshot *out) {
    family->collected = store->collections;
    for (struct push_link *i = family->series.next; i != &family->series; i = i->next) {
        struct push_series *series = CONTAINER_OF(i, struct push_series, of_family);
        series->collected = store->collections;
        add_series(series, now_ms, out);
    }
    if (family->type != PUSH_RATE) {
        return;
    }
    for (struct push_link *i = family->series.next; i != &family->series; i = i->next) {
        const struct push_series *series = CONTAINER_OF(i, struct push_series, of_family);
        snapshot_add(out, &family->desc->total, series->labels, series->values[0]);
    }
}

static void add_groups(struct push_store *store, struct snapshot *out) {
    for (struct push_link *i = store->owners.next; i != &store->owners; i = i->next) {
        struct push_owner *owner = CONTAINER_OF(i, struct push_owner, link);
        if (owner->group) {
            owner->collected = store->collections;
            snapshot_add(out, &push_time, owner->rendered, owner->push_seconds);
            snapshot_add(out, &push_failure_time, owner->rendered, owner->push_failure_seconds);
        }
    }
}

void push_reader_collect(struct push_reader *reader, struct snapshot *out) {
    struct push_store *store = reader->store;
    int64_t now_ms = push_store_now_ms(store);
    pthread_mutex_lock(&store->lock);
    atomic_store(&store->is_collected, store->series.n_items >= LONG_COLLECTION);
    reader->collection = ++store->collections;
    push_store_open_graves(store);
    for (struct push_link *i = store->families.next; i != &store->families; i = i->next) {
        add_family(store, CONTAINER_OF(i, struct push_family, link), now_ms, out);
    }
    add_groups(store, out);
    atomic_store(&store->is_collected, false);
    pthread_mutex_unlock(&store->lock);
}
