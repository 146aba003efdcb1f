#include <stdlib.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/push/metrics.h"
#include "exporter/push/store_private.h"

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

void push_store_visit_notes(const struct push_store *store, const struct push_owner *owner,
                            void (*visit)(const char *key, const char *text, void *context),
                            void *context) {
    (void)store;
    for (const struct push_note *note = owner->notes; note != NULL; note = note->next) {
        visit(note->key, note->text, context);
    }
}

/* ---- cursors ---- */

void push_cursor_begin(struct push_store *store, struct push_cursor *cursor) {
    *cursor = (struct push_cursor){.owner = store->owners.next, .next = store->cursors};
    store->cursors = cursor;
}

void push_cursor_end(struct push_store *store, struct push_cursor *cursor) {
    struct push_cursor **link = &store->cursors;
    while (*link != cursor) {
        link = &(*link)->next;
    }
    *link = cursor->next;
}

void push_cursors_leave_owner(struct push_store *store, const struct push_owner *owner) {
    for (struct push_cursor *cursor = store->cursors; cursor != NULL; cursor = cursor->next) {
        if (cursor->owner == &owner->link) {
            cursor->owner = owner->link.next;
            cursor->series = NULL;
        }
    }
}

void push_cursors_leave_series(struct push_store *store, const struct push_series *series) {
    for (struct push_cursor *cursor = store->cursors; cursor != NULL; cursor = cursor->next) {
        if (cursor->series == &series->of_owner) {
            cursor->series = series->of_owner.next;
        }
    }
}

/* ---- series ---- */

/* From counts per bucket, sum to cumulative counts, count, sum. */
size_t push_cumulate(const struct push_series *series, double out[static PUSH_MAX_WORDS]) {
    double count = 0;
    bool histogram = series->family->type == PUSH_HISTOGRAM;
    for (size_t i = 0; i < series->n_values; i++) {
        bool bucket = histogram && i <= series->n_bounds;
        count += series->values[i];
        out[i] = bucket ? count : series->values[i];
    }
    return series->n_values;
}

static struct push_series_view view(const struct push_store *store,
                                    const struct push_series *series,
                                    double values[static PUSH_MAX_WORDS]) {
    size_t n_values = push_cumulate(series, values);
    if (series->rate != NULL &&
        push_rate_mean(series->rate, push_store_now_ms(store), &values[1])) {
        n_values = 2;
    }
    return (struct push_series_view){
        .owner = series->owner,
        .family = series->family->number,
        .name = series->family->desc->main.name,
        .help = series->family->desc->main.help,
        .type = series->family->type,
        .labels = series->own,
        .n_labels = series->n_labels,
        .text = series->labels->text,
        .values = values,
        .n_values = n_values,
        .bounds = series->bounds,
        .n_bounds = series->n_bounds,
    };
}

/* By family, else as they were made. */
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
    if (series->number > place->newest) {
        return false;
    }
    return family > place->family || (family == place->family && series->number > place->series);
}

/* Those of the owner that follow on `place`, in order; returns how many. */
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
                           struct push_place *place,
                           bool (*visit)(const struct push_series_view *series, void *context),
                           void *context) {
    push_store_settle(store);
    struct push_series **all CLEANUP_FREE = calloc(owner->n_series + 1, sizeof(*all));
    size_t n = all != NULL ? sort_series(owner, place, all) : 0;
    bool go_on = true;
    size_t i = 0;
    for (; i < n && go_on; i++) {
        double values[PUSH_MAX_WORDS];
        struct push_series_view one = view(store, all[i], values);
        go_on = visit(&one, context);
        place->family = all[i]->family->number;
        place->series = all[i]->number;
    }
    return i < n;
}

struct void_visit {
    void (*visit)(const struct push_series_view *series, void *context);
    void *context;
};

static bool visit_on(const struct push_series_view *series, void *context) {
    const struct void_visit *all = context;
    all->visit(series, all->context);
    return true;
}

void push_store_visit(struct push_store *store, const struct push_owner *owner,
                      void (*visit)(const struct push_series_view *series, void *context),
                      void *context) {
    if (owner != NULL) {
        push_store_visit_some(store, owner, &(struct push_place){.newest = UINT64_MAX}, visit_on,
                              &(struct void_visit){visit, context});
        return;
    }
    push_store_settle(store);
    for (struct push_link *i = store->families.next; i != &store->families; i = i->next) {
        struct push_family *family = CONTAINER_OF(i, struct push_family, link);
        for (struct push_link *k = family->series.next; k != &family->series; k = k->next) {
            double values[PUSH_MAX_WORDS];
            struct push_series_view one =
                view(store, CONTAINER_OF(k, struct push_series, of_family), values);
            visit(&one, context);
        }
    }
}

/* With the lock held. */
static size_t remove_matching(struct push_store *store, struct push_owner *owner,
                              bool (*match)(const struct push_series_view *series, void *context),
                              void *context) {
    size_t n = 0;
    for (struct push_link *i = owner->series.next, *next; i != &owner->series; i = next) {
        next = i->next;
        struct push_series *series = CONTAINER_OF(i, struct push_series, of_owner);
        double values[PUSH_MAX_WORDS];
        struct push_series_view one = view(store, series, values);
        if (match == NULL || match(&one, context)) {
            push_series_destroy(store, series);
            n++;
        }
    }
    return n;
}

/* A group's push times are not kept as series, but shown as such. */
static bool are_times_meant(struct push_owner *owner,
                            bool (*match)(const struct push_series_view *series, void *context),
                            void *context) {
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

/* They go with the last of its series; of a group without any by themselves. */
static size_t end_owner(struct push_store *store, struct push_owner *owner, size_t n_removed,
                        bool (*match)(const struct push_series_view *series, void *context),
                        void *context) {
    if (!owner->group && n_removed > 0) {
        push_owner_drop_if_idle(store, owner);
        return 0;
    }
    if (!owner->group || owner->n_series > 0 ||
        (n_removed == 0 && !are_times_meant(owner, match, context))) {
        return 0;
    }
    push_owner_forget_pushes(store, owner);
    return n_removed > 0 ? 0 : 1;
}

/* Looks at the next series, or the end of an owner. */
static size_t remove_next(struct push_store *store, struct push_cursor *cursor,
                          bool (*match)(const struct push_series_view *series, void *context),
                          void *context) {
    struct push_owner *owner = CONTAINER_OF(cursor->owner, struct push_owner, link);
    if (cursor->series == NULL) {
        cursor->series = owner->series.next;
        cursor->n_removed = 0;
    }
    if (cursor->series == &owner->series) {
        cursor->owner = owner->link.next;
        cursor->series = NULL;
        return end_owner(store, owner, cursor->n_removed, match, context);
    }
    struct push_series *series = CONTAINER_OF(cursor->series, struct push_series, of_owner);
    double values[PUSH_MAX_WORDS];
    struct push_series_view one = view(store, series, values);
    cursor->series = cursor->series->next;
    if (match != NULL && !match(&one, context)) {
        return 0;
    }
    push_series_destroy(store, series);
    cursor->n_removed++;
    return 1;
}

bool push_store_remove_some(struct push_store *store, struct push_cursor *cursor, size_t n,
                            bool (*match)(const struct push_series_view *series, void *context),
                            void *context, size_t *n_removed) {
    push_store_lock(store);
    for (; n > 0 && cursor->owner != &store->owners; n--) {
        *n_removed += remove_next(store, cursor, match, context);
    }
    push_store_unlock(store);
    return cursor->owner != &store->owners;
}

size_t push_store_remove_if(struct push_store *store,
                            bool (*match)(const struct push_series_view *series, void *context),
                            void *context) {
    size_t n = 0;
    struct push_cursor cursor;
    push_cursor_begin(store, &cursor);
    push_store_remove_some(store, &cursor, SIZE_MAX, match, context, &n);
    push_cursor_end(store, &cursor);
    return n;
}

size_t push_store_remove_of(struct push_store *store, struct push_owner *owner,
                            bool (*match)(const struct push_series_view *series, void *context),
                            void *context) {
    push_store_lock(store);
    size_t n = remove_matching(store, owner, match, context);
    push_store_unlock(store);
    return n;
}

bool push_store_remove_series(struct push_store *store, struct push_owner *owner,
                              const struct push_update *update) {
    uint64_t hash;
    push_store_lock(store);
    struct push_family *family = push_family_find(store, update->name);
    struct push_series *series =
        family != NULL ? push_series_find(store, family, owner, update, &hash) : NULL;
    if (series != NULL) {
        push_series_destroy(store, series);
    }
    push_store_unlock(store);
    return series != NULL;
}
