#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/container_of.h"
#include "exporter/core/hash.h"
#include "exporter/push/store_private.h"

static const double default_bounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

/* ---- finding ---- */

static struct push_series *first_of(const struct push_family *family) {
    return family->n_series > 0 ? CONTAINER_OF(family->series.next, struct push_series, of_family)
                                : NULL;
}

static bool same_labels(const struct label *a, const struct label *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(a[i].value, b[i].value) != 0 || strcmp(a[i].name, b[i].name) != 0) {
            return false;
        }
    }
    return true;
}

struct push_series *push_series_find(const struct push_store *store,
                                     const struct push_family *family,
                                     const struct push_owner *owner,
                                     const struct push_update *update, uint64_t *ret_hash) {
    /* The sum is the same for equal sets, however owner and metric share the labels. */
    uint64_t labels = owner->hash + push_hash_labels(store, update->labels, update->n_labels);
    uint64_t hash = hash_mix(family->hash, labels ^ store->seed);
    size_t cursor = 0;
    struct push_series *series;
    while ((series = hash_index_next(&store->series, hash, &cursor)) != NULL) {
        if (series->family == family && series->owner == owner &&
            series->n_labels == update->n_labels &&
            same_labels(series->own, update->labels, update->n_labels)) {
            return series;
        }
    }
    *ret_hash = hash;
    return NULL;
}

static bool has_label(const struct push_series *series, const struct label *label) {
    const char *value = label_find(series->own, series->n_labels, label->name);
    if (value == NULL) {
        value = label_find(series->owner->labels, series->owner->n_labels, label->name);
    }
    return value != NULL && strcmp(value, label->value) == 0;
}

/* Whether both have the same labels, however owner and metric share them. Not as they are rendered:
 * groups get an empty instance, which is none. */
static bool look_alike(const struct push_series *a, const struct push_series *b) {
    if (a->owner->n_labels + a->n_labels != b->owner->n_labels + b->n_labels) {
        return false;
    }
    for (size_t i = 0; i < a->owner->n_labels; i++) {
        if (!has_label(b, &a->owner->labels[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < a->n_labels; i++) {
        if (!has_label(b, &a->own[i])) {
            return false;
        }
    }
    return true;
}

/* Another owner's series that would look the same; NULL: none. */
static struct push_series *find_twin(const struct push_store *store,
                                     const struct push_series *series) {
    size_t cursor = 0;
    struct push_series *other;
    while ((other = hash_index_next(&store->series, series->hash, &cursor)) != NULL) {
        bool same_name = other->family == series->family || other->family == series->family->twin;
        if (same_name && !other->family->hidden && look_alike(other, series)) {
            return other;
        }
    }
    return NULL;
}

bool push_series_is_left(const struct push_store *store, const struct push_series *series) {
    uint64_t start = store->applying != NULL ? store->applying->batch->start : 0;
    if (start == 0 || series->start == start || series->owner->n_refs > 1) {
        return false;
    }
    /* Who comes by HTTP has nothing but its last push to tell whether it is still there. */
    return push_start_is_connected(store, start)
               ? !push_start_is_connected(store, series->start)
               : !push_start_may_return(store, series->start, push_store_now_ms(store));
}

/* ---- totals ---- */

void push_series_forget_start(struct push_store *store, struct push_series *series,
                              uint64_t start) {
    for (struct push_total **link = &series->totals; *link != NULL; link = &(*link)->next) {
        if ((*link)->start == start) {
            struct push_total *total = *link;
            *link = total->next;
            series->n_totals -= total->counted;
            series->owner->n_totals -= total->counted;
            push_persist_remove(store, series->owner, total->entry);
            free(total);
            return;
        }
    }
}

/* The one not heard of for longest, of those that will not come back or, in need of room, that are
 * not there. */
static const struct push_total *find_oldest(const struct push_store *store,
                                            const struct push_total *first, bool in_need,
                                            int64_t now_ms) {
    const struct push_total *oldest = NULL;
    for (const struct push_total *i = first; i != NULL; i = i->next) {
        bool kept = in_need ? push_start_is_connected(store, i->start)
                            : push_start_may_return(store, i->start, now_ms);
        oldest = kept ? oldest : i;
    }
    return oldest;
}

void push_series_count_total(struct push_store *store, struct push_series *series,
                             struct push_total *total, int64_t now_ms) {
    enum { MANY_STARTS = 64, MAX_STARTS = 1024 };
    if (total->counted) {
        return;
    }
    total->counted = true;
    series->n_totals++;
    series->owner->n_totals++;
    bool owner_has_many = series->owner->n_totals > store->config.limits.max_owner_series;
    bool in_need = series->n_totals > (owner_has_many ? MANY_STARTS : MAX_STARTS);
    /* Two for one, so that after a rush of starts there are few again. */
    for (int i = 0; i < 2 && series->n_totals > MANY_STARTS; i++) {
        /* Not the one heard of last: the batch under way is about it. */
        const struct push_total *oldest =
            find_oldest(store, series->totals->next, in_need && i == 0, now_ms);
        if (oldest == NULL) {
            return;
        }
        push_series_forget_start(store, series, oldest->start);
    }
}

int push_series_total(struct push_store *store, struct push_series *series, uint64_t start,
                      struct push_total **ret_total, struct error *err) {
    for (struct push_total **link = &series->totals; *link != NULL; link = &(*link)->next) {
        struct push_total *total = *link;
        if (total->start == start) {
            *link = total->next;
            total->next = series->totals;
            series->totals = total;
            *ret_total = total;
            return 0;
        }
    }
    struct push_total *total = calloc(1, sizeof(*total));
    if (total == NULL) {
        return error_set(err, -ENOMEM, "%s: out of memory", series->family->desc->main.name);
    }
    *total = (struct push_total){.start = start};
    int r = push_persist_total(store, series, total, err);
    const struct push_total *oldest;
    int64_t now_ms = push_store_now_ms(store);
    while (r == -E2BIG && (oldest = find_oldest(store, series->totals, false, now_ms)) != NULL) {
        push_series_forget_start(store, series, oldest->start);
        r = push_persist_total(store, series, total, err);
    }
    if (r < 0) {
        free(total);
        return r;
    }
    total->next = series->totals;
    series->totals = total;
    *ret_total = total;
    return 0;
}

/* ---- making ---- */

/* The bounds that a series gets: its own, else those of its family, else the usual ones. */
static void choose_bounds(const struct push_family *family, const struct push_update *update,
                          const double **ret_bounds, size_t *ret_n) {
    *ret_bounds = update->bounds;
    *ret_n = update->n_bounds;
    if (update->bounds != NULL || family->type != PUSH_HISTOGRAM) {
        return;
    }
    *ret_bounds = default_bounds;
    *ret_n = ARRAY_LEN(default_bounds);
    const struct push_series *first = first_of(family);
    if (first != NULL) {
        *ret_bounds = first->bounds;
        *ret_n = first->n_bounds;
    }
}

static int check_bounds(const struct push_store *store, const struct push_update *update,
                        const double *bounds, size_t n, struct error *err) {
    size_t max = store->config.limits.max_buckets;
    if (n > max) {
        return error_set(err, -E2BIG, "%s: more than %zu buckets", update->name, max);
    }
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(bounds[i]) || (i > 0 && bounds[i - 1] >= bounds[i])) {
            return error_set(err, -EINVAL, "%s: bounds must be finite and ascend", update->name);
        }
    }
    return 0;
}

static size_t count_values(enum push_type type, size_t n_bounds) {
    return type == PUSH_HISTOGRAM || type == PUSH_SUMMARY ? n_bounds + 2 : 1;
}

static struct push_series *allocate(struct push_family *family, struct push_owner *owner,
                                    const struct push_update *update) {
    size_t labels_size = update->n_labels * sizeof(struct label);
    size_t text_size = push_labels_size(update->labels, update->n_labels);
    struct push_series *series = calloc(1, sizeof(*series) + labels_size + text_size);
    if (series == NULL) {
        return NULL;
    }
    series->family = family;
    series->owner = owner;
    series->n_labels = update->n_labels;
    push_copy_labels(series->own, (char *)(series->own + update->n_labels), update->labels,
                     update->n_labels);
    return series;
}

static bool fill(struct push_series *series, const double *bounds, size_t n_bounds) {
    enum push_type type = series->family->type;
    series->n_bounds = n_bounds;
    series->bounds = n_bounds > 0 ? calloc(n_bounds, sizeof(*series->bounds)) : NULL;
    series->n_values = count_values(type, n_bounds);
    series->labels = push_labels_render(series->owner, series->own, series->n_labels);
    if ((n_bounds > 0 && series->bounds == NULL) || series->labels == NULL) {
        return false;
    }
    for (size_t i = 0; i < n_bounds; i++) {
        series->bounds[i] = bounds[i];
    }
    if (type == PUSH_RATE) {
        series->rate = calloc(1, sizeof(*series->rate));
        return series->rate != NULL;
    }
    if (type == PUSH_HISTOGRAM || type == PUSH_SUMMARY) {
        series->buckets = push_buckets_create(series);
        return series->buckets != NULL;
    }
    return true;
}

/* Only gauges and rates can share a name, and then it matters who has which. */
static bool join(struct push_store *store, struct push_series *series) {
    enum push_type type = series->family->type;
    if (type != PUSH_GAUGE && type != PUSH_RATE) {
        return true;
    }
    series->member = push_member_join(store, series->family, series->owner);
    return series->member != NULL;
}

static void free_series(struct push_store *store, struct push_series *series) {
    push_member_leave(store, series->member);
    if (series->buckets != NULL) {
        push_bury(store, series->buckets->text.data, series->collected);
        free(series->buckets);
    }
    push_bury(store, series->labels, series->collected);
    while (series->totals != NULL) {
        push_series_forget_start(store, series, series->totals->start);
    }
    free(series->rate);
    free(series->bounds);
    free(series);
}

/* Keeps it as safely as the others, unless another owner has the same and does not make way. */
static int admit(struct push_store *store, struct push_series *series, const char *name,
                 struct error *err) {
    struct push_series *twin = find_twin(store, series);
    if (twin != NULL && !push_series_displace(store, twin, series->owner)) {
        return error_set(err, -EEXIST, "%s{%s}: is a series of %s, not of %s", name,
                         series->labels->text, twin->owner->name, series->owner->name);
    }
    series->text_size = push_text_size(series);
    int r = push_check_text(store, series, name, err);
    return r < 0 ? r : push_persist_series(store, series, err);
}

void push_series_pay_family(struct push_family *family, const struct push_entry *before) {
    struct push_series *first = first_of(family);
    if (first != NULL) {
        push_share_repay(first->owner, before->size);
        push_share_pay(first->owner, family->entry->size);
    }
}

static void insert(struct push_store *store, struct push_series *series) {
    struct push_owner *owner = series->owner;
    if (series->family->n_series == 0) {
        push_share_pay(owner, series->family->entry->size);
    }
    series->number = ++store->number;
    hash_index_add(&store->series, series->hash, series);
    push_link_append(&series->family->series, &series->of_family);
    series->family->n_series++;
    push_link_append(&owner->series, &series->of_owner);
    push_share_add(store, series);
}

int push_series_create(struct push_store *store, struct push_family *family,
                       struct push_owner *owner, const struct push_update *update, uint64_t hash,
                       struct push_series **ret_series, struct error *err) {
    const double *bounds;
    size_t n_bounds;
    choose_bounds(family, update, &bounds, &n_bounds);
    int r = push_check_labels(store, owner, family->type, update, err);
    if (r == 0) {
        r = check_bounds(store, update, bounds, n_bounds, err);
    }
    if (r < 0) {
        return r;
    }
    struct push_series *series = allocate(family, owner, update);
    if (series == NULL) {
        error_set(err, -ENOMEM, "%s: out of memory", update->name);
        return -ENOMEM;
    }
    series->hash = hash;
    series->ttl_ms = PUSH_TTL_DEFAULT;
    r = fill(series, bounds, n_bounds) && join(store, series) &&
                hash_index_reserve(&store->series, 1)
            ? admit(store, series, update->name, err)
            : error_set(err, -ENOMEM, "%s: out of memory", update->name);
    if (r < 0) {
        free_series(store, series);
        return r;
    }
    insert(store, series);
    *ret_series = series;
    return 0;
}

void push_series_destroy(struct push_store *store, struct push_series *series) {
    struct push_family *family = series->family;
    if (!series->hidden) {
        hash_index_remove(&store->series, series->hash, series);
    }
    bool was_first = first_of(family) == series;
    push_persist_remove(store, series->owner, series->entry);
    store->removals++;
    push_link_remove(&series->of_family);
    push_cursors_leave_series(store, series);
    push_link_remove(&series->of_owner);
    push_share_remove(store, series);
    series->owner->n_with_ttl -= series->ttl_ms > 0 ? 1 : 0;
    family->n_series--;
    if (was_first) {
        push_share_repay(series->owner, family->entry->size);
    }
    if (family->n_series == 0) {
        push_family_destroy(store, family);
    } else if (was_first) {
        push_share_pay(first_of(family)->owner, family->entry->size);
    }
    free_series(store, series);
}
