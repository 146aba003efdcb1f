#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/memory.h"
#include "exporter/push/metrics.h"
#include "exporter/push/private.h"

/* Reading and removing: views, cursors, expiry, snapshots. */

/* ---- owners ---- */

struct push_owner_view push_owner_view(const struct push_store *store,
                                       const struct push_owner *owner) {
    double age = (double)(push_store_now_ms(store) - owner->seen_ms) / 1e3;
    return (struct push_owner_view){
        .number = owner->number,
        .name = owner->name,
        .labels = owner->labels,
        .n_labels = owner->n_labels,
        .group = owner->group,
        .n_series = owner->n_series,
        .n_refs = owner->n_refs,
        .seen_seconds = clock_wall_seconds() - age,
        .expired = push_owner_has_expired(store, owner, push_store_now_ms(store)),
        .push_seconds = owner->push_seconds,
        .push_failure_seconds = owner->push_failure_seconds,
    };
}

struct push_owner *push_store_next_owner(const struct push_store *store,
                                         const struct push_owner *after) {
    const struct push_link *next = after != NULL ? after->link.next : store->owners.next;
    return next != &store->owners ? CONTAINER_OF(next, struct push_owner, link) : NULL;
}

struct push_owner *push_store_owner_after(const struct push_store *store, uint64_t number) {
    struct push_owner *owner = NULL;
    do {
        owner = push_store_next_owner(store, owner);
    } while (owner != NULL && owner->number <= number);
    return owner;
}

/* ---- walks ---- */

static void walk_begin(struct push_store *store, struct push_walk *walk, struct push_link *first) {
    *walk = (struct push_walk){.outer = first, .next = store->walks};
    store->walks = walk;
}

static void walk_end(struct push_store *store, struct push_walk *walk) {
    struct push_walk **link = &store->walks;
    while (*link != walk) {
        link = &(*link)->next;
    }
    *link = walk->next;
}

static void next_list(struct push_walk *walk) {
    walk->outer = walk->outer->next;
    walk->inner = NULL;
}

void push_walks_skip(struct push_store *store, const struct push_link *item) {
    for (struct push_walk *walk = store->walks; walk != NULL; walk = walk->next) {
        if (walk->outer == item) {
            next_list(walk);
        } else if (walk->inner == item) {
            walk->inner = item->next;
        }
    }
}

void push_cursor_begin(struct push_store *store, struct push_cursor *cursor) {
    cursor->n_removed = 0;
    push_store_lock(store);
    walk_begin(store, &cursor->walk, store->owners.next);
    push_store_unlock(store);
}

void push_cursor_end(struct push_store *store, struct push_cursor *cursor) {
    push_store_lock(store);
    walk_end(store, &cursor->walk);
    push_store_unlock(store);
}

/* ---- series ---- */

/* From counts per bucket, sum to cumulative counts, count, sum. */
static size_t cumulate(const struct push_series *series, double out[static PUSH_MAX_WORDS]) {
    double count = 0;
    bool histogram = series->family->type == PUSH_HISTOGRAM;
    for (size_t i = 0; i < series->n_values; i++) {
        bool bucket = histogram && i <= series->n_bounds;
        count += series->values[i];
        out[i] = bucket ? count : series->values[i];
    }
    return series->n_values;
}

static double mean_of(const struct push_series *counter, int64_t now_ms) {
    double mean;
    return push_rate_mean(counter->rate, now_ms, &mean) ? mean : NAN;
}

static struct push_series_view view(const struct push_store *store,
                                    const struct push_series *series,
                                    double values[static PUSH_MAX_WORDS]) {
    const struct push_family *family = series->family;
    size_t n_values = cumulate(series, values);
    if (series->mean_of != NULL) {
        values[n_values++] = mean_of(series->mean_of, push_store_now_ms(store));
    }
    return (struct push_series_view){
        .owner = series->owner,
        .family = family->number,
        .name = push_family_name(family),
        .help = family->desc->desc.help,
        .type = family->type,
        .labels = series->own,
        .n_labels = series->n_labels,
        .text = series->labels->text,
        .values = values,
        .n_values = n_values,
        .bounds = series->bounds,
        .n_bounds = series->n_bounds,
    };
}

/* By family, then in the order in which they were made. */
static int compare_series(const void *a, const void *b) {
    const struct push_series *left = *(struct push_series *const *)a;
    const struct push_series *right = *(struct push_series *const *)b;
    if (left->family != right->family) {
        return left->family->number < right->family->number ? -1 : 1;
    }
    return (left->number > right->number) - (left->number < right->number);
}

uint64_t push_store_newest(const struct push_store *store) {
    return store->number;
}

static bool is_after(const struct push_series *series, const struct push_place *place) {
    uint64_t family = series->family->number;
    return series->number <= place->newest &&
           (family > place->family || (family == place->family && series->number > place->series));
}

/* Gets the series of the owner that follow `place`, sorted; returns how many. */
static size_t sort_series(const struct push_owner *owner, const struct push_place *place,
                          struct push_series **out) {
    size_t n = 0;
    bool sorted = true;
    for (struct push_link *i = owner->series.next; i != &owner->series; i = i->next) {
        struct push_series *series = CONTAINER_OF(i, struct push_series, of_owner);
        if (is_after(series, place)) {
            out[n++] = series;
            sorted = sorted && (n == 1 || compare_series(&out[n - 2], &out[n - 1]) < 0);
        }
    }
    if (!sorted) {
        qsort(out, n, sizeof(*out), compare_series);
    }
    return n;
}

bool push_store_visit_some(struct push_store *store, const struct push_owner *owner,
                           struct push_place *place, push_series_function *visit, void *context) {
    struct push_series **all CLEANUP_FREE = mem_zalloc(owner->n_series + 1, sizeof(*all));
    size_t n = sort_series(owner, place, all), i = 0;
    bool go_on = true;
    for (; i < n && go_on; i++) {
        double values[PUSH_MAX_WORDS];
        struct push_series_view one = view(store, all[i], values);
        go_on = visit(&one, context);
        place->family = all[i]->family->number;
        place->series = all[i]->number;
    }
    return i < n;
}

void push_store_visit(struct push_store *store, const struct push_owner *owner,
                      push_series_function *visit, void *context) {
    const struct push_owner *one = owner != NULL ? owner : push_store_next_owner(store, NULL);
    while (one != NULL) {
        struct push_place place = {.newest = UINT64_MAX};
        bool stop = push_store_visit_some(store, one, &place, visit, context);
        one = stop || owner != NULL ? NULL : push_store_next_owner(store, one);
    }
}

/* A group's push times are no series, but are shown like some. */
static bool match_times(struct push_owner *owner, push_series_function *match, void *context) {
    struct push_series_view time = {
        .owner = owner,
        .name = push_time.name,
        .type = PUSH_GAUGE,
        .text = owner->rendered->text,
        .values = &owner->push_seconds,
        .n_values = 1,
    };
    struct push_series_view failure_time = time;
    failure_time.name = push_failure_time.name;
    failure_time.values = &owner->push_failure_seconds;
    return match == NULL || match(&time, context) || match(&failure_time, context);
}

/* Removes the owner if its last series was removed, and a group without series if its push times
 * match; returns 1 for the latter. */
static size_t end_owner(struct push_store *store, struct push_owner *owner, size_t n_removed,
                        push_series_function *match, void *context) {
    if (!owner->group && n_removed > 0) {
        push_owner_drop_if_idle(store, owner);
        return 0;
    }
    if (!owner->group || owner->n_series > 0 ||
        (n_removed == 0 && !match_times(owner, match, context))) {
        return 0;
    }
    push_owner_forget_pushes(store, owner);
    return n_removed > 0 ? 0 : 1;
}

/* Checks the next series, or the end of an owner. */
static size_t remove_next(struct push_store *store, struct push_cursor *cursor,
                          push_series_function *match, void *context) {
    struct push_walk *walk = &cursor->walk;
    struct push_owner *owner = CONTAINER_OF(walk->outer, struct push_owner, link);
    if (walk->inner == NULL) {
        walk->inner = owner->series.next;
        cursor->n_removed = 0;
    }
    if (walk->inner == &owner->series) {
        next_list(walk);
        return end_owner(store, owner, cursor->n_removed, match, context);
    }
    struct push_series *series = CONTAINER_OF(walk->inner, struct push_series, of_owner);
    double values[PUSH_MAX_WORDS];
    struct push_series_view one = view(store, series, values);
    walk->inner = walk->inner->next;
    if (match != NULL && !match(&one, context)) {
        return 0;
    }
    push_series_destroy(store, series);
    cursor->n_removed++;
    return 1;
}

bool push_store_remove_some(struct push_store *store, struct push_cursor *cursor, size_t n,
                            push_series_function *match, void *context, size_t *n_removed) {
    push_store_lock(store);
    for (; n > 0 && cursor->walk.outer != &store->owners; n--) {
        *n_removed += remove_next(store, cursor, match, context);
    }
    push_store_unlock(store);
    return cursor->walk.outer != &store->owners;
}

size_t push_store_remove_if(struct push_store *store, push_series_function *match, void *context) {
    size_t n = 0;
    struct push_cursor cursor;
    push_cursor_begin(store, &cursor);
    push_store_remove_some(store, &cursor, SIZE_MAX, match, context, &n);
    push_cursor_end(store, &cursor);
    return n;
}

/* ---- expiry ---- */

bool push_owner_has_expired(const struct push_store *store, const struct push_owner *owner,
                            int64_t now_ms) {
    bool stays = owner->group && (owner->push_seconds > 0 || owner->n_series > 0);
    int64_t ttl_ms = store->config.ttl_ms;
    return owner->n_refs == 0 && !stays && ttl_ms > 0 && now_ms - owner->seen_ms > ttl_ms;
}

static bool has_expired(struct push_series *series, bool owner_gone, int64_t now_ms) {
    const struct push_series *base = push_series_base(series);
    if (base->ttl_ms == PUSH_TTL_DEFAULT) {
        return owner_gone;
    }
    return base->ttl_ms > 0 && now_ms - base->updated_ms > base->ttl_ms;
}

/* Whether the series was pushed before a known plugin with these labels was. `series` NULL: any. */
static bool imitates_plugin(const struct push_store *store, const struct push_owner *group,
                            const struct push_series *series) {
    const struct label *labels = series != NULL ? series->own : NULL;
    size_t n_labels = series != NULL ? series->n_labels : 0;
    return push_claim_check_labels(store, group, group->name, labels, n_labels, NULL) < 0;
}

static void begin_pass(struct push_store *store) {
    struct push_expiry *expiry = &store->expiry;
    walk_begin(store, &expiry->walk, store->owners.next);
    expiry->has_begun = true;
    expiry->has_claims = expiry->claims != store->claims;
    expiry->claims = store->claims;
}

/* Whether any series of the owner may expire or be evicted. */
static bool begin_owner(struct push_store *store, struct push_owner *owner, int64_t now_ms) {
    struct push_expiry *expiry = &store->expiry;
    if (owner->n_refs > 0) {
        owner->seen_ms = now_ms;
    }
    bool is_checked = owner->group && expiry->has_claims;
    expiry->walk.inner = owner->series.next;
    expiry->is_evicted = is_checked && imitates_plugin(store, owner, NULL);
    return expiry->is_evicted || owner->n_with_ttl > 0 || (is_checked && owner->n_naming > 0) ||
           push_owner_has_expired(store, owner, now_ms);
}

/* Checks one series. */
static void expire_next(struct push_store *store, struct push_owner *owner, int64_t now_ms) {
    struct push_expiry *expiry = &store->expiry;
    struct push_walk *walk = &expiry->walk;
    struct push_series *series = CONTAINER_OF(walk->inner, struct push_series, of_owner);
    bool is_evicted = expiry->is_evicted ||
                      (owner->group && expiry->has_claims && imitates_plugin(store, owner, series));
    bool has_ended = has_expired(series, push_owner_has_expired(store, owner, now_ms), now_ms);
    walk->inner = walk->inner->next;
    if (is_evicted || has_ended) {
        push_series_destroy(store, series);
        store->stats.expired += has_ended ? 1 : 0;
    }
}

static void expire_owner(struct push_store *store, struct push_owner *owner) {
    struct push_expiry *expiry = &store->expiry;
    next_list(&expiry->walk);
    owner->lingers &= !push_owner_has_expired(store, owner, push_store_now_ms(store));
    if (expiry->is_evicted) {
        push_owner_clear(store, owner);
    } else if (owner->group && owner->n_series == 0) {
        push_owner_forget_pushes(store, owner);
    } else {
        push_owner_drop_if_idle(store, owner);
    }
}

bool push_store_expire(struct push_store *store, size_t n) {
    struct push_expiry *expiry = &store->expiry;
    struct push_walk *walk = &expiry->walk;
    int64_t now_ms = push_store_now_ms(store);
    push_store_lock(store);
    if (!expiry->has_begun) {
        begin_pass(store);
    }
    for (; n > 0 && walk->outer != &store->owners; n--) {
        struct push_owner *owner = CONTAINER_OF(walk->outer, struct push_owner, link);
        if (walk->inner == NULL && !begin_owner(store, owner, now_ms)) {
            next_list(walk);
        } else if (walk->inner != &owner->series) {
            expire_next(store, owner, now_ms);
        } else {
            expire_owner(store, owner);
        }
    }
    expiry->has_begun = walk->outer != &store->owners;
    if (!expiry->has_begun) {
        walk_end(store, walk);
    }
    push_store_unlock(store);
    return expiry->has_begun;
}

/* ---- collections ---- */

static void add_histogram(const struct push_series *series, struct snapshot *out) {
    const struct metric_desc *desc = &series->family->desc->desc;
    double count = 0;
    for (size_t i = 0; i < series->buckets->n; i++) {
        count += series->values[i];
        snapshot_add_suffixed(out, desc, "_bucket", series->buckets->labels[i], count);
    }
    snapshot_add_suffixed(out, desc, "_sum", series->labels, series->values[series->n_bounds + 1]);
    snapshot_add_suffixed(out, desc, "_count", series->labels, count);
}

static void add_summary(const struct push_series *series, struct snapshot *out) {
    const struct metric_desc *desc = &series->family->desc->desc;
    for (size_t i = 0; i < series->buckets->n; i++) {
        snapshot_add(out, desc, series->buckets->labels[i], series->values[i]);
    }
    snapshot_add_suffixed(out, desc, "_sum", series->labels, series->values[series->n_bounds + 1]);
    snapshot_add_suffixed(out, desc, "_count", series->labels, series->values[series->n_bounds]);
}

static void add_series(const struct push_series *series, int64_t now_ms, struct snapshot *out) {
    const struct metric_desc *desc = &series->family->desc->desc;
    double mean;
    if (series->family->type == PUSH_HISTOGRAM) {
        add_histogram(series, out);
    } else if (series->family->type == PUSH_SUMMARY) {
        add_summary(series, out);
    } else if (series->mean_of == NULL) {
        snapshot_add(out, desc, series->labels, series->values[0]);
    } else if (push_rate_mean(series->mean_of->rate, now_ms, &mean)) {
        snapshot_add(out, desc, series->labels, mean);
    }
}

/* An older collection may go on behind a newer one, which refers to the item as well. */
static void note_collected(uint64_t *collected, uint64_t collection) {
    *collected = *collected > collection ? *collected : collection;
}

/* Adds the next series, or goes on to the next family. What was made after the collection began is
 * left out: it may replace a series of the same name that is in the snapshot already. */
static void collect_next(struct push_reader *reader, uint64_t newest, int64_t now_ms,
                         struct snapshot *out) {
    struct push_walk *walk = &reader->position;
    struct push_family *family = CONTAINER_OF(walk->outer, struct push_family, link);
    if (walk->inner == NULL) {
        note_collected(&family->collected, reader->collection);
        walk->inner = family->series.next;
    }
    if (walk->inner == &family->series || family->number > newest) {
        next_list(walk);
        return;
    }
    struct push_series *series = CONTAINER_OF(walk->inner, struct push_series, in_family);
    walk->inner = walk->inner->next;
    if (series->number <= newest) {
        note_collected(&series->collected, reader->collection);
        add_series(series, now_ms, out);
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

/* Lets the event loop have the lock, so that it does not wait until a large store is read. */
static void yield_lock(struct push_store *store) {
    if (atomic_load_explicit(&store->n_waiting, memory_order_relaxed) > 0) {
        pthread_mutex_unlock(&store->lock);
        while (atomic_load(&store->n_waiting) > 0) {
            sched_yield();
        }
        pthread_mutex_lock(&store->lock);
    }
}

void push_reader_collect(struct push_reader *reader, struct snapshot *out) {
    enum { AT_ONCE = 256 };
    struct push_store *store = reader->store;
    int64_t now_ms = push_store_now_ms(store);
    pthread_mutex_lock(&store->lock);
    reader->collection = ++store->collections;
    push_store_free_deferred(store);
    uint64_t newest = store->number;
    walk_begin(store, &reader->position, store->families.next);
    for (size_t n = 1; reader->position.outer != &store->families; n++) {
        collect_next(reader, newest, now_ms, out);
        if (n % AT_ONCE == 0) {
            yield_lock(store);
        }
    }
    walk_end(store, &reader->position);
    add_groups(store, out);
    pthread_mutex_unlock(&store->lock);
}
