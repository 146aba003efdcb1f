#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/memory.h"
#include "exporter/push/private.h"

/* A batch is checked first: what it needs is found or made, and in no list but the indexes. If all
 * of it can be done it is done, which cannot fail any more. */

/* What an update comes down to. */
struct step {
    struct push_series *series; /* NULL: nothing is to be done */
    struct push_total *total;   /* for PUSH_TOTAL */
};

/* What a batch does; marks in what is there, by the batch's number, are no part of it. */
struct push_plan {
    size_t weight; /* of the batch, in updates */
    struct push_store *store;
    const struct push_batch *batch;
    int64_t now_ms;
    ptrdiff_t cost; /* more in all */

    /* The update that is being looked at. */
    struct push_owner *owner;
    const struct push_update *update;
    enum push_type type; /* found, where the update does not say it */
    uint64_t labels_hash;
    struct error *err;

    struct step *steps;
    struct push_family **families; /* new ones */
    struct push_series **series;   /* the same */
    struct push_series **totalled; /* that have a new total */
    struct push_series **dropped;  /* that others replace */
    size_t n_families, n_series, n_totalled, n_dropped;
    size_t cap_steps, cap_families, cap_series, cap_totalled, cap_dropped;
};

/* ---- room ---- */

static bool is_replacing(const struct push_plan *plan) {
    return plan->batch->mode != PUSH_MERGE;
}

static void count(struct push_plan *plan, struct push_owner *owner, ptrdiff_t n_series,
                  ptrdiff_t cost) {
    owner->planned += n_series;
    plan->cost += cost;
    if (owner->share != NULL) {
        owner->share->planned += cost;
    }
}

/* Whether there is room where as many series and bytes are gone in the end. */
static int check_room(const struct push_plan *plan, const struct push_owner *owner, size_t n_gone,
                      size_t cost_gone, const char *name) {
    const struct push_limits *limits = &plan->store->config.limits;
    const struct push_share *share = owner->share;
    ptrdiff_t n_series = (ptrdiff_t)(owner->n_series - n_gone) + owner->planned;
    if (owner->planned > 0 && n_series > (ptrdiff_t)limits->max_owner_series) {
        return error_set(plan->err, -E2BIG,
                         "%s: %s would have more than %zu series (push.max-series-per-plugin)",
                         name, owner->name, limits->max_owner_series);
    }
    if (share != NULL && share->planned > (ptrdiff_t)cost_gone &&
        share->cost - cost_gone + (size_t)share->planned > limits->max_peer_bytes) {
        return error_set(plan->err, -E2BIG,
                         "%s: %s would keep more than %zu bytes (push.max-size-per-peer)", name,
                         share->peer, limits->max_peer_bytes);
    }
    return push_check_room(plan->store, plan->cost - (ptrdiff_t)cost_gone,
                           plan->store->config.table_bytes / 16, name, plan->err);
}

/* What a batch that replaces leaves is known at its end; until then, that it does not bring too
 * much itself. */
static int check_room_so_far(const struct push_plan *plan) {
    const struct push_owner *owner = plan->owner;
    size_t cost = owner->share != NULL ? owner->share->cost : owner->cost;
    const char *name = plan->update->name;
    return is_replacing(plan) ? check_room(plan, owner, owner->n_series, cost, name)
                              : check_room(plan, owner, 0, 0, name);
}

/* ---- making way ---- */

static void drop_series(struct push_plan *plan, struct push_series *series) {
    series->dropped = plan->store->batch;
    ARRAY_GROW(&plan->dropped, &plan->cap_dropped, plan->n_dropped + 1);
    plan->dropped[plan->n_dropped++] = series;
    count(plan, series->owner, -1, -(ptrdiff_t)series->cost);
}

/* Whether a process that has gone left the series, and a new one pushes. That may mean something
 * else by it: its author has changed it. */
static bool is_left(const struct push_plan *plan, const struct push_series *series) {
    enum { A_MINUTE_MS = 60 * 1000 };
    const struct push_store *store = plan->store;
    uint64_t start = plan->batch->start;
    if (start == 0 || series->start == start || series->owner->n_refs > 1) {
        return false;
    }
    /* Of a client of HTTP nothing but its last push shows that it is there. */
    return push_start_is_connected(store, start) ? !push_start_is_connected(store, series->start)
                                                 : plan->now_ms - series->updated_ms >= A_MINUTE_MS;
}

/* Whether the family is this owner's alone, and the batch may replace it: one that replaces, or the
 * first of a new process. The latter can be tried with every line, so not many series are looked
 * at. */
static bool may_go(const struct push_plan *plan, const struct push_family *family) {
    enum { MANY_SERIES = 1000 };
    if (family->batch == plan->store->batch ||
        (!is_replacing(plan) && family->n_members > MANY_SERIES)) {
        return false;
    }
    for (struct push_link *i = family->members.next; i != &family->members; i = i->next) {
        const struct push_series *series = CONTAINER_OF(i, struct push_member, link)->series;
        if (series->owner != plan->owner || series->batch == plan->store->batch ||
            !(is_replacing(plan) || is_left(plan, series))) {
            return false;
        }
    }
    return family->n_members > 0;
}

static const char *article(enum push_type type) {
    return type == PUSH_UNTYPED ? "an" : "a";
}

/* Whether the family has means of rates, or others. One that the batch itself makes has its first
 * series only. */
static bool has_means(const struct push_family *family) {
    return family->n_members > 0 ? family->n_means > 0
                                 : family->first != NULL && family->first->gauge == family;
}

static bool has_others(const struct push_family *family) {
    return family->n_members > 0 ? family->n_means < family->n_members : !has_means(family);
}

static const struct push_series *first_of(const struct push_family *family) {
    return family->n_members > 0
               ? CONTAINER_OF(family->members.next, struct push_member, link)->series
               : family->first;
}

static int refuse_type(const struct push_plan *plan, const struct push_family *family) {
    const struct push_series *first = first_of(family);
    const char *name = plan->update->name, *owner = plan->owner->name;
    const char *has = first != NULL ? first->owner->name : owner;
    const char *type = push_type_words[plan->type], *a = article(plan->type);
    bool is_rate = has_means(family) && !has_others(family);
    const char *theirs = push_type_words[is_rate ? PUSH_RATE : family->type];
    if (strcmp(push_family_name(family), name) != 0 && !family->has_short_name) {
        return error_set(plan->err, -EEXIST,
                         "%s: as %s %s of %s it would clash with %s, %s %s of %s", name, a, type,
                         owner, push_family_name(family), article(family->type), theirs, has);
    }
    bool same = strcmp(has, owner) == 0;
    return error_set(plan->err, -EEXIST, "%s: is %s %s of %s, not %s %s%s%s", name,
                     article(family->type), theirs, has, a, type, same ? "" : " of ",
                     same ? "" : owner);
}

/* Drops a family that is in the way, if that may be. */
static int drop_family(struct push_plan *plan, struct push_family *family) {
    if (!may_go(plan, family)) {
        return refuse_type(plan, family);
    }
    family->dropped = plan->store->batch;
    for (struct push_link *i = family->members.next; i != &family->members; i = i->next) {
        struct push_series *series = CONTAINER_OF(i, struct push_member, link)->series;
        if (series->dropped != plan->store->batch) {
            drop_series(plan, series);
        }
    }
    return 0;
}

/* ---- families ---- */

/* Takes all names that a family has; those that have them are dropped. */
static int take_names(struct push_plan *plan, const char *name, enum push_type of,
                      bool has_short_name) {
    char text[PUSH_MAX_NAME + 16];
    const char *next;
    int r = 0;
    for (size_t i = 0;
         r == 0 && (next = push_family_next_name(name, of, has_short_name, i, text)) != NULL; i++) {
        struct push_family *other;
        if (push_is_reserved(plan->store, next)) {
            return error_set(plan->err, -EPERM,
                             "%s: is a metric of waap's own, choose another name", next);
        }
        while (r == 0 && (other = push_family_of_name(plan->store, next)) != NULL) {
            r = drop_family(plan, other);
        }
    }
    return r;
}

static int make_family(struct push_plan *plan, const char *name, enum push_type of,
                       struct push_family **ret_family) {
    struct push_owner *owner = plan->owner;
    bool has_short_name = plan->type == PUSH_COUNTER && !owner->group;
    int r = push_check_name(plan->update, plan->err);
    r = r == 0 ? take_names(plan, name, of, has_short_name) : r;
    if (r < 0) {
        return r;
    }
    struct push_family *family =
        push_family_create(plan->store, name, of, plan->update->help, owner->group);
    family->has_short_name = has_short_name;
    family->payer = push_share_ref(owner->share);
    ARRAY_GROW(&plan->families, &plan->cap_families, plan->n_families + 1);
    plan->families[plan->n_families++] = family;
    hash_index_add(&plan->store->names, family->hash, family);
    count(plan, owner, 0, (ptrdiff_t)push_family_cost(family));
    *ret_family = family;
    return 0;
}

/* The family of that name and type, found or made. */
static int family_for(struct push_plan *plan, const char *name, enum push_type of,
                      struct push_family **ret_family) {
    struct push_family *family = push_family_find(plan->store, name);
    bool is_other = family != NULL && family->type != of;
    int r = is_other ? drop_family(plan, family) : 0;
    if (r == 0 && (family == NULL || is_other)) {
        r = make_family(plan, name, of, &family);
    } else if (r == 0 && !family->has_help) {
        r = push_check_help(plan->update, plan->err);
    }
    if (r == 0) {
        family->batch = plan->store->batch;
        *ret_family = family;
    }
    return r;
}

/* ---- what an update means ---- */

/* The names of a counter and of a rate's mean, whether or not _total was said. */
struct names {
    char base[PUSH_MAX_NAME + 16], total[PUSH_MAX_NAME + 16];
};

static void derive_names(const char *name, struct names *ret_names) {
    size_t len = strlen(name), ending = strlen("_total");
    len = len > ending && strcmp(name + len - ending, "_total") == 0 ? len - ending : len;
    memcpy(ret_names->base, name, len);
    ret_names->base[len] = '\0';
    memcpy(ret_names->total, name, len);
    memcpy(ret_names->total + len, "_total", ending + 1);
}

/* A gauge and the mean of a rate are in one family: which of both a new series is. */
static int guess_kind(struct push_plan *plan, const struct push_family *family) {
    enum push_op op = plan->update->op;
    bool may_be_rate = !plan->owner->group && has_means(family);
    if (may_be_rate && has_others(family) && op == PUSH_INC) {
        return error_set(plan->err, -EINVAL,
                         "%s: there are gauges and rates of that name: its first use must say "
                         "the type",
                         plan->update->name);
    }
    bool is_rate = may_be_rate && op == PUSH_INC;
    plan->type = is_rate || (op == PUSH_TOTAL && !plan->owner->group) ? PUSH_RATE : PUSH_GAUGE;
    return 0;
}

/* The type of an update that does not say it. */
static int find_type(struct push_plan *plan) {
    const struct push_store *store = plan->store;
    const char *name = plan->update->name;
    const struct push_family *family = push_family_find(store, name);
    if (family == NULL && !plan->owner->group) {
        struct names names;
        derive_names(name, &names);
        family = push_family_find(store, names.total);
        family = family != NULL && family->has_short_name ? family : NULL;
    }
    if (family == NULL) {
        return error_set(plan->err, -EINVAL, "%s: its first use must say the type", name);
    }
    plan->type = family->type;
    if (family->type != PUSH_GAUGE) {
        return 0;
    }
    const struct push_series *series =
        push_series_find(store, family, plan->owner, plan->update, plan->labels_hash);
    if (series == NULL) {
        return guess_kind(plan, family);
    }
    plan->type = series->gauge == family ? PUSH_RATE : PUSH_GAUGE;
    return 0;
}

/* The family that an update names. A plugin's counter is called …_total, and no other family has
 * the name without; a rate is a gauge by its name. */
static int find_target(struct push_plan *plan, struct push_family **ret_family) {
    const char *name = plan->update->name;
    struct names names;
    if (plan->owner->group || (plan->type != PUSH_COUNTER && plan->type != PUSH_RATE)) {
        return family_for(plan, name, plan->type, ret_family);
    }
    derive_names(name, &names);
    if (plan->type == PUSH_RATE) {
        return family_for(plan, names.base, PUSH_GAUGE, ret_family);
    }
    struct push_family *other =
        strcmp(name, names.total) != 0 ? push_family_find(plan->store, name) : NULL;
    int r = other != NULL ? drop_family(plan, other) : 0;
    return r < 0 ? r : family_for(plan, names.total, PUSH_COUNTER, ret_family);
}

/* ---- series ---- */

static const double default_bounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

/* The bounds that a series gets: its own, else those of its family, else the usual ones. */
static void choose_bounds(const struct push_family *family, const struct push_update *update,
                          const double **ret_bounds, size_t *ret_n) {
    bool has_bounds = family->type == PUSH_HISTOGRAM || family->type == PUSH_SUMMARY;
    *ret_bounds = has_bounds ? update->bounds : NULL;
    *ret_n = has_bounds ? update->n_bounds : 0;
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

/* Whether nothing is in the way of a new series; what makes way is dropped. */
static int check_twin(struct push_plan *plan, const struct push_family *family,
                      const struct push_series *series) {
    struct push_series *twin = push_series_twin(plan->store, family, series);
    if (twin == NULL) {
        return 0;
    }
    if (twin->batch == plan->store->batch || !push_claim_outranks(series->owner, twin->owner)) {
        return error_set(plan->err, -EEXIST, "%s{%s}: is a series of %s, not of %s",
                         plan->update->name, series->labels->text, twin->owner->name,
                         series->owner->name);
    }
    drop_series(plan, twin);
    return 0;
}

/* That take as long as an update. Each new series copies the rendered labels of its owner. */
enum { FIGURES_OF_UPDATE = 16, BYTES_OF_UPDATE = 512, OWNER_BYTES_OF_UPDATE = 256 };

static int admit(struct push_plan *plan, const struct push_series *series) {
    size_t size = push_series_entry_size(series);
    if (size > PUSH_PAGE_SIZE) {
        return error_set(plan->err, -E2BIG,
                         "%s: all labels, values and bounds take %zu bytes, at most %d fit",
                         plan->update->name, size, PUSH_PAGE_SIZE);
    }
    int r = check_twin(plan, series->family, series);
    if (r == 0 && series->gauge != NULL) {
        r = check_twin(plan, series->gauge, series);
    }
    count(plan, series->owner, 1, (ptrdiff_t)series->cost);
    return r == 0 ? check_room_so_far(plan) : r;
}

static void note_first(struct push_family *family, struct push_series *series) {
    if (family->n_members == 0 && family->first == NULL) {
        family->first = series;
    }
}

static int make_series(struct push_plan *plan, struct push_family *family,
                       struct push_series **ret_series) {
    const struct push_update *update = plan->update;
    struct push_owner *owner = plan->owner;
    struct push_family *gauge = NULL;
    const double *bounds;
    size_t n_bounds;
    choose_bounds(family, update, &bounds, &n_bounds);
    int r = push_check_labels(owner, plan->type, update, plan->err);
    r = r < 0 ? r
              : push_claim_check_labels(plan->store, owner, update->name, update->labels,
                                        update->n_labels, plan->err);
    r = r < 0 ? r : push_check_bounds(update, bounds, n_bounds, plan->err);
    plan->weight += owner->rendered->len / OWNER_BYTES_OF_UPDATE +
                    (update->bounds == NULL ? n_bounds / FIGURES_OF_UPDATE : 0);
    if (r == 0 && plan->weight > PUSH_MAX_UPDATES) {
        return push_update_fail_many(plan->err);
    }
    if (r == 0 && plan->type == PUSH_RATE) {
        struct names names;
        derive_names(update->name, &names);
        gauge = family;
        r = family_for(plan, names.total, PUSH_COUNTER, &family);
    }
    if (r < 0) {
        return r;
    }
    struct push_series *series =
        push_series_create(family, gauge, owner, update, bounds, n_bounds, plan->labels_hash);
    ARRAY_GROW(&plan->series, &plan->cap_series, plan->n_series + 1);
    plan->series[plan->n_series++] = series;
    r = admit(plan, series);
    push_series_index(plan->store, series);
    note_first(family, series);
    if (gauge != NULL) {
        note_first(gauge, series);
    }
    *ret_series = series;
    return r;
}

static int refuse_twice(const struct push_plan *plan, const struct push_series *series) {
    return error_set(plan->err, -EINVAL, "%s{%s}: given twice", plan->update->name,
                     series->labels->text);
}

static bool has_other_bounds(const struct push_series *series, const struct push_update *update) {
    bool has_bounds =
        series->family->type == PUSH_HISTOGRAM || series->family->type == PUSH_SUMMARY;
    if (update->bounds == NULL || !has_bounds) {
        return false;
    }
    bool same = series->n_bounds == update->n_bounds;
    for (size_t i = 0; same && i < series->n_bounds; i++) {
        same = series->bounds[i] == update->bounds[i];
    }
    return !same;
}

/* A series that is set, or that another process has left, may come with other buckets than before,
 * a gauge may become a rate: another series replaces it. Not twice in a batch. */
static int drop_other_kind(struct push_plan *plan, struct push_series *series,
                           const struct push_family *family) {
    const struct push_update *update = plan->update;
    bool was_rate = series->gauge == family;
    bool changes_kind = family->type == PUSH_GAUGE && was_rate != (plan->type == PUSH_RATE);
    if (!changes_kind && !has_other_bounds(series, update)) {
        return 0;
    }
    bool is_named = series->batch == plan->store->batch;
    if (is_named && update->op == PUSH_SET) {
        return refuse_twice(plan, series);
    }
    bool may_change =
        is_left(plan, series) || (changes_kind ? is_replacing(plan) : update->op == PUSH_SET);
    if (!is_named && may_change) {
        drop_series(plan, series);
        return 1;
    }
    return changes_kind ? error_set(plan->err, -EEXIST, "%s: is a %s of %s, not a %s", update->name,
                                    was_rate ? "rate" : "gauge", series->owner->name,
                                    was_rate ? "gauge" : "rate")
                        : error_set(plan->err, -EEXIST,
                                    "%s: has other buckets, set at its first use", update->name);
}

static int series_for(struct push_plan *plan, struct push_series **ret_series) {
    struct push_family *family = NULL;
    int r = plan->type == PUSH_UNSAID ? find_type(plan) : 0;
    r = r < 0 ? r : find_target(plan, &family);
    if (r < 0) {
        return r;
    }
    *ret_series =
        push_series_find(plan->store, family, plan->owner, plan->update, plan->labels_hash);
    r = *ret_series != NULL ? drop_other_kind(plan, *ret_series, family) : 1;
    return r > 0 ? make_series(plan, family, ret_series) : r;
}

/* ---- totals ---- */

static int total_for(struct push_plan *plan, struct push_series *series,
                     struct push_total **ret_total) {
    uint64_t start = plan->batch->start;
    for (struct push_total *total = series->totals; total != NULL; total = total->next) {
        if (total->start == start) {
            *ret_total = total;
            return 0;
        }
    }
    if (series->new_total != NULL) {
        *ret_total = series->new_total;
        return 0;
    }
    series->new_total = mem_zalloc(1, sizeof(*series->new_total));
    series->new_total->start = start;
    ARRAY_GROW(&plan->totalled, &plan->cap_totalled, plan->n_totalled + 1);
    plan->totalled[plan->n_totalled++] = series;
    count(plan, series->owner, 0, (ptrdiff_t)push_total_cost(series));
    *ret_total = series->new_total;
    return check_room_so_far(plan);
}

/* ---- the plan ---- */

/* These are ours to say of every group. */
static bool is_push_time(const char *name) {
    return strcmp(name, "push_time_seconds") == 0 || strcmp(name, "push_failure_time_seconds") == 0;
}

static int plan_update(struct push_plan *plan, struct push_owner *owner,
                       const struct push_update *update, struct step *ret_step) {
    *ret_step = (struct step){0};
    if (owner->group && is_push_time(update->name)) {
        return 0;
    }
    if (owner->group && update->type == PUSH_RATE) { /* a Pushgateway has none to list */
        return error_set(plan->err, -EINVAL, "%s: is a rate, and those are for plugins only",
                         update->name);
    }
    if (strlen(update->name) > PUSH_MAX_NAME) {
        return push_check_name(update, plan->err);
    }
    plan->owner = owner;
    plan->update = update;
    plan->type = update->type;
    plan->labels_hash =
        owner->hash + push_hash_labels(plan->store, update->labels, update->n_labels);
    struct push_series *series = NULL;
    int r = series_for(plan, &series);
    if (r < 0) {
        return r;
    }
    if (series->batch == plan->store->batch && is_replacing(plan)) {
        return refuse_twice(plan, series);
    }
    series->batch = plan->store->batch;
    ret_step->series = series;
    r = push_check_values(plan->batch, update, series, plan->type, plan->err);
    return r == 0 && update->op == PUSH_TOTAL ? total_for(plan, series, &ret_step->total) : r;
}

/* Whether a batch that replaces leaves the series out. */
static bool is_replaced(const struct push_plan *plan, const struct push_series *series) {
    uint64_t batch = plan->store->batch;
    bool named = plan->batch->mode == PUSH_REPLACE_ALL || series->family->batch == batch;
    return is_replacing(plan) && named && series->batch != batch && series->dropped != batch;
}

/* What the batch leaves must fit, once all of it is known. */
static int check_result(const struct push_plan *plan, const struct push_owner *owner) {
    size_t n_gone = 0, cost_gone = 0;
    if (!is_replacing(plan)) {
        return 0;
    }
    for (struct push_link *i = owner->series.next; i != &owner->series; i = i->next) {
        const struct push_series *series = CONTAINER_OF(i, struct push_series, of_owner);
        if (is_replaced(plan, series)) {
            n_gone++;
            cost_gone += series->cost;
        }
    }
    return check_room(plan, owner, n_gone, cost_gone, "push");
}

/* How long the event loop has to wait for the batch, in updates. New series come on top. */
static size_t weigh(const struct push_batch *batch) {
    size_t n = 0;
    for (size_t i = 0; i < batch->n_updates && n <= PUSH_MAX_UPDATES; i++) {
        const struct push_update *update = &batch->updates[i];
        n += 1 + (update->n_labels + update->n_values + update->n_bounds) / FIGURES_OF_UPDATE +
             push_labels_size(update->labels, update->n_labels) / BYTES_OF_UPDATE;
    }
    return n;
}

static int make_plan(struct push_plan *plan, struct push_owner *owner, size_t *ret_failed) {
    const struct push_batch *batch = plan->batch;
    *ret_failed = batch->n_updates;
    plan->weight = weigh(batch);
    if (plan->weight > PUSH_MAX_UPDATES) {
        return push_update_fail_many(plan->err);
    }
    ARRAY_GROW(&plan->steps, &plan->cap_steps, batch->n_updates);
    for (size_t i = 0; i < batch->n_updates; i++) {
        struct push_owner *of = batch->updates[i].owner;
        int r = plan_update(plan, of != NULL ? of : owner, &batch->updates[i], &plan->steps[i]);
        if (r < 0) {
            *ret_failed = i;
            return r;
        }
    }
    return check_result(plan, owner);
}

/* Adds the entries of all that is new to the table; they do not count yet. */
static int place(const struct push_plan *plan) {
    struct push_store *store = plan->store;
    int r = 0;
    for (size_t i = 0; r == 0 && i < plan->n_families; i++) {
        r = push_family_place(store, plan->families[i], plan->err);
    }
    for (size_t i = 0; r == 0 && i < plan->n_series; i++) {
        r = push_series_place(store, plan->series[i], plan->err);
    }
    for (size_t i = 0; r == 0 && i < plan->n_totalled; i++) {
        struct push_series *series = plan->totalled[i];
        r = push_total_place(store, series, series->new_total, plan->err);
    }
    return r;
}

static void reset_counts(struct push_owner *owner) {
    owner->planned = 0;
    if (owner->share != NULL) {
        owner->share->planned = 0;
    }
}

/* Also where it was never done. */
static void forget_plan(struct push_plan *plan) {
    for (size_t i = 0; i < plan->n_families; i++) {
        if (plan->families[i]->payer != NULL) {
            plan->families[i]->payer->planned = 0;
        }
    }
    for (size_t i = 0; i < plan->n_series; i++) {
        reset_counts(plan->series[i]->owner);
    }
    for (size_t i = 0; i < plan->n_totalled; i++) {
        reset_counts(plan->totalled[i]->owner);
    }
    for (size_t i = 0; i < plan->n_dropped; i++) {
        reset_counts(plan->dropped[i]->owner);
    }
}

static void abandon(struct push_plan *plan) {
    struct push_store *store = plan->store;
    for (size_t i = 0; i < plan->n_totalled; i++) {
        struct push_total *total = TAKE(plan->totalled[i]->new_total);
        push_table_remove(store->table, total->entry);
        free(total);
    }
    for (size_t i = 0; i < plan->n_series; i++) {
        push_series_unindex(store, plan->series[i]);
        push_series_free(store, plan->series[i]);
    }
    for (size_t i = 0; i < plan->n_families; i++) {
        hash_index_remove(&store->names, plan->families[i]->hash, plan->families[i]);
        push_share_unref(plan->families[i]->payer);
        push_family_free(store, plan->families[i]);
    }
    store->batch++; /* nothing is dropped */
}

/* ---- doing it ---- */

static void set_ttl(struct push_store *store, struct push_series *series, int64_t ttl_ms) {
    struct push_owner *owner = series->owner;
    owner->n_with_ttl -= series->ttl_ms > 0 ? 1 : 0;
    owner->n_with_ttl += ttl_ms > 0 ? 1 : 0;
    series->ttl_ms = ttl_ms;
    push_table_write(store->table, &(struct push_change){series->ttl, (double)ttl_ms}, 1);
}

/* What a plugin does not say stays as it was; a group's series are for ever unless their last push
 * says otherwise. */
static bool changes_ttl(const struct push_series *series, const struct push_update *update) {
    bool said = update->ttl_ms != PUSH_TTL_DEFAULT;
    return said ? update->ttl_ms != series->ttl_ms : series->owner->group && series->ttl_ms > 0;
}

/* The one used last comes first; its time is enough to about a second. */
static void note_use(struct push_store *store, struct push_series *series, struct push_total *total,
                     int64_t now_ms) {
    struct push_total **link = &series->totals;
    while (*link != total) {
        link = &(*link)->next;
    }
    *link = total->next;
    total->next = series->totals;
    series->totals = total;
    if ((double)now_ms - *total->used_ms >= 1e3) {
        push_table_write(store->table, &(struct push_change){total->used_ms, (double)now_ms}, 1);
    }
}

static void perform(struct push_plan *plan, const struct step *step,
                    const struct push_update *update) {
    struct push_store *store = plan->store;
    struct push_series *series = step->series;
    struct push_family *named = series->gauge != NULL ? series->gauge : series->family;
    push_value_apply(store, series, step->total, update, plan->now_ms);
    if (step->total != NULL) {
        note_use(store, series, step->total, plan->now_ms);
    }
    series->updated_ms = plan->now_ms;
    series->start = plan->batch->start;
    series->owner->seen_ms = plan->now_ms;
    if (changes_ttl(series, update)) {
        set_ttl(store, series, update->ttl_ms);
    }
    if (update->help != NULL && !named->has_help) {
        push_family_take_help(store, named, update->help);
    }
}

/* A series that is set must not be seen with a value it never had, not even after a crash: it is
 * given the value before it counts. */
static void preset_new(const struct push_plan *plan) {
    for (size_t i = 0; plan->n_series > 0 && i < plan->batch->n_updates; i++) {
        const struct step *step = &plan->steps[i];
        if (step->series != NULL && plan->batch->updates[i].op == PUSH_SET &&
            step->series->number == 0) {
            push_value_preset(step->series, &plan->batch->updates[i]);
        }
    }
}

static void link_new(struct push_plan *plan) {
    struct push_store *store = plan->store;
    for (size_t i = 0; i < plan->n_families; i++) {
        push_family_link(store, plan->families[i]);
    }
    for (size_t i = 0; i < plan->n_series; i++) {
        push_series_link(store, plan->series[i]);
    }
    for (size_t i = 0; i < plan->n_totalled; i++) {
        struct push_total *total = TAKE(plan->totalled[i]->new_total);
        *total->used_ms = (double)plan->now_ms;
        push_total_link(store, plan->totalled[i], total);
        push_total_forget_oldest(store, plan->totalled[i]);
    }
}

static void sweep(struct push_plan *plan, struct push_owner *owner) {
    for (size_t i = 0; i < plan->n_dropped; i++) {
        push_series_destroy(plan->store, plan->dropped[i]);
    }
    if (!is_replacing(plan)) {
        return;
    }
    for (struct push_link *i = owner->series.next, *next; i != &owner->series; i = next) {
        next = i->next;
        struct push_series *series = CONTAINER_OF(i, struct push_series, of_owner);
        if (is_replaced(plan, series)) {
            push_series_destroy(plan->store, series);
        }
    }
}

static void note_push(struct push_store *store, struct push_owner *owner, double seconds) {
    if (owner->group && owner->push_seconds != seconds) {
        owner->push_seconds = seconds;
        push_owner_save(store, owner);
    }
}

/* For the batch's own group, and for those that its updates name. */
static void note_pushes(const struct push_plan *plan, struct push_owner *owner) {
    const struct push_batch *batch = plan->batch;
    if (!owner->group && batch->n_updates > 0 && batch->updates[0].owner == NULL) {
        return; /* one plugin's, as most are */
    }
    double seconds = clock_wall_seconds();
    note_push(plan->store, owner, seconds);
    for (size_t i = 0; i < batch->n_updates; i++) {
        if (batch->updates[i].owner != NULL) {
            note_push(plan->store, batch->updates[i].owner, seconds);
        }
    }
}

static void carry_out(struct push_plan *plan, struct push_owner *owner) {
    preset_new(plan);
    link_new(plan);
    for (size_t i = 0; i < plan->batch->n_updates; i++) {
        if (plan->steps[i].series != NULL) {
            perform(plan, &plan->steps[i], &plan->batch->updates[i]);
        }
    }
    forget_plan(plan); /* before what it refers to goes */
    sweep(plan, owner);
    plan->store->updates += plan->batch->n_updates;
    note_pushes(plan, owner);
}

/* ---- interface ---- */

struct push_plan *push_plan_create(struct push_store *store) {
    struct push_plan *plan = mem_zalloc(1, sizeof(*plan));
    plan->store = store;
    return plan;
}

void push_plan_destroy(struct push_plan *plan) {
    if (plan != NULL) {
        free(plan->steps);
        free(plan->families);
        free(plan->series);
        free(plan->totalled);
        free(plan->dropped);
        free(plan);
    }
}

int push_store_apply(struct push_store *store, struct push_owner *owner,
                     const struct push_batch *batch, size_t *ret_failed, struct error *err) {
    struct push_plan *plan = store->plan;
    size_t failed = 0;
    push_store_lock(store);
    store->batch++;
    plan->batch = batch;
    plan->err = err;
    plan->now_ms = push_store_now_ms(store);
    plan->cost = 0;
    plan->n_families = plan->n_series = plan->n_totalled = plan->n_dropped = 0;
    int r = make_plan(plan, owner, &failed);
    r = r == 0 ? place(plan) : r;
    if (r < 0) {
        forget_plan(plan);
        abandon(plan);
        push_store_count_refused(store, r);
    } else {
        carry_out(plan, owner);
    }
    owner->seen_ms = plan->now_ms;
    push_store_unlock(store);
    if (r < 0 && ret_failed != NULL) {
        *ret_failed = failed;
    }
    return r;
}
