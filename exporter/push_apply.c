#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container.h"
#include "exporter/push_store_private.h"

/* A batch is applied in two strides. The first finds or makes every family and series and checks
 * every value: it can fail, and then takes back what it made. The second changes values, and
 * cannot fail. */

static int grow(void **items, size_t *cap, size_t n, size_t size) {
    if (n <= *cap) {
        return 0;
    }
    size_t wanted = n > 2 * *cap ? n : 2 * *cap;
    void *grown = reallocarray(*items, wanted, size);
    if (grown == NULL) {
        return -ENOMEM;
    }
    *items = grown;
    *cap = wanted;
    return 0;
}

/* ---- the first stride ---- */

static int check_room(const struct push_store *store, const struct push_owner *owner,
                      size_t n_series, size_t n_owner_series, const char *name, struct error *err) {
    const struct push_limits *limits = &store->config.limits;
    if (n_owner_series > limits->max_owner_series) {
        return error_set(err, -E2BIG,
                         "%s: %s has %zu series, no more are allowed (push.max-series-per-plugin)",
                         name, owner->name, limits->max_owner_series);
    }
    if (n_series > limits->max_series) {
        return error_set(err, -E2BIG,
                         "%s: there are %zu series, no more are allowed (push.max-series)", name,
                         limits->max_series);
    }
    return 0;
}

static int make_series(struct push_store *store, struct push_family *family,
                       struct push_owner *owner, const struct push_batch *batch,
                       const struct push_update *update, uint64_t hash,
                       struct push_series **ret_series, struct error *err) {
    int r = 0;
    if (batch->mode == PUSH_MERGE) {
        r = check_room(store, owner, store->series.n_items + 1, owner->n_series + 1, update->name,
                       err);
    }
    if (r == 0 && grow((void **)&store->fresh, &store->cap_fresh, store->n_fresh + 1,
                       sizeof(struct push_series *)) < 0) {
        r = error_set(err, -ENOMEM, "%s: out of memory", update->name);
    }
    if (r == 0) {
        r = push_series_create(store, family, owner, update, hash, ret_series, err);
    }
    if (r == 0) {
        store->fresh[store->n_fresh++] = *ret_series;
    } else if (family->n_series == 0) {
        push_family_destroy(store, family);
    }
    return r;
}

static bool has_other_bounds(const struct push_series *series, const struct push_update *update) {
    if (update->bounds == NULL) {
        return false;
    }
    bool same = series->n_bounds == update->n_bounds;
    for (size_t i = 0; same && i < series->n_bounds; i++) {
        same = series->bounds[i] == update->bounds[i];
    }
    return !same;
}

/* A series that is set may come with other buckets than before: another takes its place. */
static int replace_series(struct push_store *store, struct push_series *old,
                          const struct push_batch *batch, const struct push_update *update,
                          struct push_series **ret_series, struct error *err) {
    if (update->op != PUSH_SET) {
        return error_set(err, -EEXIST, "%s: has other buckets, set at its first use", update->name);
    }
    if (grow((void **)&store->replaced, &store->cap_replaced, store->n_replaced + 1,
             sizeof(struct push_series *)) < 0) {
        return error_set(err, -ENOMEM, "%s: out of memory", update->name);
    }
    hash_index_remove(&store->series, old->hash, old);
    int r = make_series(store, old->family, old->owner, batch, update, old->hash, ret_series, err);
    if (r < 0) {
        hash_index_add(&store->series, old->hash, old);
        return r;
    }
    old->hidden = true;
    store->replaced[store->n_replaced++] = old;
    return 0;
}

static int find_or_make(struct push_store *store, struct push_owner *owner,
                        const struct push_batch *batch, const struct push_update *update,
                        struct push_series **ret_series, struct error *err) {
    struct push_family *family = NULL;
    int r = push_family_for(store, owner, update, batch->mode != PUSH_MERGE, &family, err);
    if (r < 0) {
        return r;
    }
    uint64_t hash = 0;
    struct push_series *series = push_series_find(store, family, owner, update, &hash);
    if (series == NULL) {
        r = make_series(store, family, owner, batch, update, hash, &series, err);
    } else if (has_other_bounds(series, update)) {
        r = replace_series(store, series, batch, update, &series, err);
    }
    *ret_series = series;
    return r;
}

/* These are ours to say of every group. */
static bool is_push_time(const char *name) {
    return strcmp(name, "push_time_seconds") == 0 || strcmp(name, "push_failure_time_seconds") == 0;
}

static int prepare(struct push_store *store, struct push_owner *owner,
                   const struct push_batch *batch, const struct push_update *update,
                   struct push_step *ret_step, struct error *err) {
    *ret_step = (struct push_step){0};
    if (owner->group && is_push_time(update->name)) {
        return 0;
    }
    struct push_series *series = NULL;
    int r = find_or_make(store, owner, batch, update, &series, err);
    if (r < 0) {
        return r;
    }
    if (series->batch == store->batch && batch->mode != PUSH_MERGE) {
        return error_set(err, -EINVAL, "%s{%s}: given twice", update->name, series->labels->text);
    }
    series->batch = store->batch;
    series->family->batch = store->batch;
    r = push_check_values(batch, update, series, err);
    if (r == 0 && update->op == PUSH_TOTAL) {
        r = push_series_total(store, series, batch->start, &ret_step->total, err);
    }
    ret_step->series = series;
    return r;
}

/* ---- back ---- */

/* Totals of series that were there before. */
static void drop_fresh_totals(struct push_store *store) {
    for (size_t i = 0; i < store->n_steps; i++) {
        struct push_series *series = store->steps[i].series;
        while (series != NULL && series->totals != NULL && series->totals->entry->commit == 0) {
            push_series_forget_start(store, series, series->totals->start);
        }
    }
}

static void take_back(struct push_store *store) {
    drop_fresh_totals(store);
    while (store->n_fresh > 0) {
        push_series_destroy(store, store->fresh[--store->n_fresh]);
    }
    while (store->n_replaced > 0) {
        struct push_series *old = store->replaced[--store->n_replaced];
        old->hidden = false;
        hash_index_add(&store->series, old->hash, old);
    }
    while (store->n_hidden > 0) {
        push_family_unhide(store, store->hidden[--store->n_hidden]);
    }
    push_table_take_back(store->table);
}

/* ---- the second stride ---- */

static void set_ttl(struct push_store *store, struct push_series *series, int64_t ttl_ms) {
    struct push_owner *owner = series->owner;
    owner->n_with_ttl -= series->ttl_ms > 0 ? 1 : 0;
    owner->n_with_ttl += ttl_ms > 0 ? 1 : 0;
    series->ttl_ms = ttl_ms;
    push_table_write(store->table, &(struct push_change){series->ttl, (double)ttl_ms}, 1);
}

/* A series that is set must not be seen with a value it never had, not even after a crash: it is
 * given the value before it counts. */
static void preset_fresh(const struct push_store *store, const struct push_batch *batch) {
    for (size_t i = 0; store->n_fresh > 0 && i < batch->n_updates; i++) {
        const struct push_step *step = &store->steps[i];
        if (step->series != NULL && batch->updates[i].op == PUSH_SET &&
            step->series->entry->commit == 0) {
            push_value_preset(step, &batch->updates[i]);
        }
    }
}

static void perform(struct push_store *store, const struct push_step *step,
                    const struct push_update *update, int64_t now_ms) {
    struct push_series *series = step->series;
    push_value_apply(store, step, update, now_ms);
    series->updated_ms = now_ms;
    series->owner->seen_ms = now_ms;
    if (update->ttl_ms != PUSH_TTL_DEFAULT && update->ttl_ms != series->ttl_ms) {
        set_ttl(store, series, update->ttl_ms);
    }
    if (update->help != NULL && !series->family->has_help) {
        push_family_take_help(store, series->family, update->help);
    }
}

/* Whether a batch that replaces leaves the series out. */
static bool is_replaced(const struct push_store *store, const struct push_series *series,
                        enum push_mode mode) {
    if (series->hidden || series->family->hidden) {
        return true;
    }
    bool named = mode == PUSH_REPLACE_ALL || series->family->batch == store->batch;
    return mode != PUSH_MERGE && named && series->batch != store->batch;
}

static size_t count_replaced(const struct push_store *store, const struct push_owner *owner,
                             enum push_mode mode) {
    size_t n = 0;
    for (struct push_link *i = owner->series.next; i != &owner->series; i = i->next) {
        n += is_replaced(store, CONTAINER_OF(i, struct push_series, of_owner), mode) ? 1 : 0;
    }
    return n;
}

static void sweep(struct push_store *store, struct push_owner *owner, enum push_mode mode) {
    if (mode == PUSH_MERGE) { /* of whichever owner */
        for (size_t i = 0; i < store->n_replaced; i++) {
            push_series_destroy(store, store->replaced[i]);
        }
        return;
    }
    for (struct push_link *i = owner->series.next, *next; i != &owner->series; i = next) {
        next = i->next;
        struct push_series *series = CONTAINER_OF(i, struct push_series, of_owner);
        if (is_replaced(store, series, mode)) {
            push_series_destroy(store, series);
        }
    }
}

/* ---- both, in turns ---- */

static size_t end_of_turn(const struct push_applying *applying, size_t n) {
    size_t left = applying->batch->n_updates - applying->next;
    return applying->next + (n < left ? n : left);
}

static int prepare_some(struct push_store *store, struct push_applying *applying, size_t n) {
    const struct push_batch *batch = applying->batch;
    size_t end = end_of_turn(applying, n);
    for (; applying->next < end; applying->next++) {
        size_t i = applying->next;
        store->n_steps = i + 1;
        struct push_owner *whose = batch->updates[i].owner;
        int r = prepare(store, whose != NULL ? whose : applying->owner, batch, &batch->updates[i],
                        &store->steps[i], &applying->error);
        if (r < 0) {
            applying->failed = i;
            return r;
        }
    }
    return 0;
}

/* What the batch leaves must fit, once all of it is known. */
static int check_result(const struct push_store *store, struct push_applying *applying) {
    const struct push_owner *owner = applying->owner;
    enum push_mode mode = applying->batch->mode;
    if (mode == PUSH_MERGE) {
        return 0;
    }
    size_t n_replaced = count_replaced(store, owner, mode);
    size_t n_series = store->series.n_items + store->n_replaced; /* those are not in the index */
    applying->failed = applying->batch->n_updates;
    return check_room(store, owner, n_series - n_replaced, owner->n_series - n_replaced, "push",
                      &applying->error);
}

static void perform_some(struct push_store *store, struct push_applying *applying, size_t n) {
    size_t end = end_of_turn(applying, n);
    for (; applying->next < end; applying->next++) {
        const struct push_step *step = &store->steps[applying->next];
        if (step->series != NULL) {
            perform(store, step, &applying->batch->updates[applying->next], applying->now_ms);
        }
    }
}

static void finish(struct push_store *store, struct push_applying *applying, int code) {
    struct push_owner *owner = applying->owner;
    if (code < 0) {
        take_back(store);
        push_store_count_refused(store, code);
    } else {
        sweep(store, owner, applying->batch->mode);
        store->updates += applying->batch->n_updates;
        if (owner->group) {
            owner->push_seconds = clock_wall_seconds();
            push_persist_times(store, owner);
        }
    }
    store->n_fresh = 0;
    store->n_replaced = 0;
    store->n_hidden = 0;
    push_persist_tidy(store);
    owner->seen_ms = applying->now_ms;
    applying->code = code;
    applying->over = true;
    store->applying = NULL;
    pthread_mutex_unlock(&store->lock);
}

void push_store_apply_begin(struct push_store *store, struct push_applying *applying,
                            struct push_owner *owner, const struct push_batch *batch) {
    push_store_lock(store);
    store->applying = applying;
    store->batch++;
    store->n_steps = 0;
    applying->owner = owner;
    applying->batch = batch;
    applying->over = false;
    applying->is_prepared = false;
    applying->next = 0;
    applying->failed = 0;
    applying->now_ms = push_store_now_ms(store);
    if (grow((void **)&store->steps, &store->cap_steps, batch->n_updates,
             sizeof(struct push_step)) < 0) {
        finish(store, applying, error_set(&applying->error, -ENOMEM, "out of memory"));
    }
}

bool push_store_apply_some(struct push_store *store, struct push_applying *applying, size_t n) {
    const struct push_batch *batch = applying->batch;
    if (applying->over) {
        return false;
    }
    if (applying->is_prepared) {
        perform_some(store, applying, n);
        if (applying->next == batch->n_updates) {
            finish(store, applying, 0);
        }
        return !applying->over;
    }
    int r = prepare_some(store, applying, n);
    if (r == 0 && applying->next == batch->n_updates) {
        r = check_result(store, applying);
        applying->is_prepared = r == 0;
    }
    if (r < 0) {
        finish(store, applying, r);
    } else if (applying->is_prepared) {
        preset_fresh(store, batch);
        push_table_commit(store->table);
        applying->next = 0;
    }
    return !applying->over;
}

bool push_store_is_applying(const struct push_store *store) {
    return store->applying != NULL;
}

void push_store_settle(struct push_store *store) {
    while (store->applying != NULL) {
        push_store_apply_some(store, store->applying, SIZE_MAX);
    }
}

void push_store_lock(struct push_store *store) {
    push_store_settle(store);
    pthread_mutex_lock(&store->lock);
}

void push_store_unlock(struct push_store *store) {
    pthread_mutex_unlock(&store->lock);
}

int push_store_apply(struct push_store *store, struct push_owner *owner,
                     const struct push_batch *batch, size_t *ret_failed, struct error *err) {
    struct push_applying applying;
    push_store_apply_begin(store, &applying, owner, batch);
    while (push_store_apply_some(store, &applying, SIZE_MAX)) {
    }
    if (applying.code < 0 && ret_failed != NULL) {
        *ret_failed = applying.failed;
    }
    return applying.code < 0 ? error_set(err, applying.code, "%s", applying.error.text) : 0;
}
