#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/push/claim.h"
#include "exporter/push/store_private.h"

/* The first stride of a batch: finds or makes what its updates are about. All of it can be taken
 * back. */

int push_grow(void **items, size_t *cap, size_t n, size_t size) {
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

/* What a batch that replaces leaves is known at its end; until then, that it has not made too much
 * already. */
static int check_room(const struct push_store *store, const struct push_owner *owner,
                      const char *name, struct error *err) {
    size_t n_before = push_is_replacing(store) ? owner->n_series - store->n_fresh : 0;
    size_t n_series = store->series.n_items + store->n_replaced + 1 - n_before;
    return push_check_room(store, owner, n_series, 1, n_before, name, err);
}

static int make_series(struct push_store *store, struct push_family *family,
                       struct push_owner *owner, const struct push_update *update, uint64_t hash,
                       struct push_series **ret_series, struct error *err) {
    int r = check_room(store, owner, update->name, err);
    if (r == 0 && push_grow((void **)&store->fresh, &store->cap_fresh, store->n_fresh + 1,
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

static int refuse_twice(const struct push_series *series, const char *name, struct error *err) {
    return error_set(err, -EINVAL, "%s{%s}: given twice", name, series->labels->text);
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

static bool reserve_replaced(struct push_store *store) {
    return push_grow((void **)&store->replaced, &store->cap_replaced, store->n_replaced + 1,
                     sizeof(struct push_series *)) == 0;
}

/* A series that is set, or that another process has left, may come with other buckets than before:
 * another takes its place. Not twice in a batch: what the batch has made itself is taken back with
 * it. */
static int replace_series(struct push_store *store, struct push_series *old,
                          const struct push_update *update, struct push_series **ret_series,
                          struct error *err) {
    if (update->op != PUSH_SET && !push_series_is_left(store, old)) {
        return error_set(err, -EEXIST, "%s: has other buckets, set at its first use", update->name);
    }
    if (old->batch == store->batch) {
        return refuse_twice(old, update->name, err);
    }
    if (!reserve_replaced(store)) {
        return error_set(err, -ENOMEM, "%s: out of memory", update->name);
    }
    hash_index_remove(&store->series, old->hash, old);
    int r = make_series(store, old->family, old->owner, update, old->hash, ret_series, err);
    if (r < 0) {
        hash_index_add(&store->series, old->hash, old);
        return r;
    }
    old->hidden = true;
    store->replaced[store->n_replaced++] = old;
    return 0;
}

/* Not what the batch itself names, nor while a store is loaded, where there is no batch. Groups
 * outrank nobody, so that a batch which displaces one of another owner's always merges. */
bool push_series_displace(struct push_store *store, struct push_series *series,
                          const struct push_owner *owner) {
    if (store->applying == NULL || series->batch == store->batch ||
        !push_claim_outranks(store, owner, series->owner) || !reserve_replaced(store)) {
        return false;
    }
    hash_index_remove(&store->series, series->hash, series);
    series->hidden = true;
    store->replaced[store->n_replaced++] = series;
    return true;
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
        r = make_series(store, family, owner, update, hash, &series, err);
    } else if (has_other_bounds(series, update)) {
        r = replace_series(store, series, update, &series, err);
    }
    *ret_series = series;
    return r;
}

/* These are ours to say of every group. */
static bool is_push_time(const char *name) {
    return strcmp(name, "push_time_seconds") == 0 || strcmp(name, "push_failure_time_seconds") == 0;
}

int push_prepare(struct push_store *store, struct push_owner *owner, const struct push_batch *batch,
                 const struct push_update *update, struct push_step *ret_step, struct error *err) {
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
        return refuse_twice(series, update->name, err);
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

/* Totals of a series that was there before. */
static void drop_fresh_totals(struct push_store *store, struct push_series *series) {
    while (series != NULL && series->totals != NULL && series->totals->entry->commit == 0) {
        push_series_forget_start(store, series, series->totals->start);
    }
}

bool push_take_back(struct push_store *store, size_t n) {
    for (; n > 0 && store->n_steps > 0; n--) {
        drop_fresh_totals(store, store->steps[--store->n_steps].series);
    }
    for (; n > 0 && store->n_fresh > 0; n--) {
        push_series_destroy(store, store->fresh[--store->n_fresh]);
    }
    if (store->n_steps > 0 || store->n_fresh > 0) {
        return true;
    }
    while (store->n_replaced > 0) {
        struct push_series *old = store->replaced[--store->n_replaced];
        old->hidden = false;
        hash_index_add(&store->series, old->hash, old);
    }
    while (store->n_hidden > 0) {
        push_family_unhide(store, store->hidden[--store->n_hidden]);
    }
    store->last_id = store->id_before;
    push_table_take_back(store->table);
    return false;
}
