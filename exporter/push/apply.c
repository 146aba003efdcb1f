#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/memory.h"
#include "exporter/push/private.h"

/* A batch is applied in two steps. The first checks each update and makes the families, series and
 * totals that it needs; their entries in the table are not committed yet. If all updates are valid
 * the second step commits and changes values, and cannot fail. Otherwise all is removed again. */

/* The series and total that an update changes. */
struct step {
    struct push_series *series; /* NULL: nothing to do */
    struct push_total *total;   /* for PUSH_TOTAL */
};

struct push_plan {
    struct push_store *store;
    const struct push_batch *batch;
    struct error *err;
    int64_t now_ms;
    size_t weight; /* of the batch, in updates */
    size_t max_weight;
    uint64_t newest;              /* number of the store before the batch */
    size_t n_before, cost_before; /* what a batch that replaces may free */

    /* The current update. */
    struct push_owner *owner;
    const struct push_update *update;
    enum push_type type; /* as found, if the update has none */
    uint64_t labels_hash;

    struct step *steps;
    struct push_series **made;
    struct push_series **totalled; /* those with a new total, which is their first */
    struct push_series **dropped;  /* those that others replace; of a rate: the counter */
    size_t n_made, n_totalled, n_dropped;
    size_t cap_steps, cap_made, cap_totalled, cap_dropped;
};

static bool is_replacing(const struct push_plan *plan) {
    return plan->batch->mode != PUSH_MERGE;
}

static void note(struct push_series ***list, size_t *capacity, size_t *n,
                 struct push_series *series) {
    ARRAY_GROW(list, capacity, *n + 1);
    (*list)[(*n)++] = series;
}

/* ---- limits ---- */

/* `n` without the `n_gone` that may be replaced, of which those dropped already are not in `n`. */
static size_t rest_of(size_t n, size_t n_gone) {
    return n > n_gone ? n - n_gone : 0;
}

static int check_bytes(const struct push_plan *plan, const char *name, size_t cost_gone) {
    const struct push_store *store = plan->store;
    const struct push_share *share = plan->owner->share;
    size_t max = store->config.limits.max_peer_bytes;
    if (share != NULL && rest_of(share->cost, cost_gone) > max) {
        return error_set(plan->err, -E2BIG,
                         "%s: %s would keep more than %zu bytes (push.max-size-per-peer)", name,
                         share->peer, max);
    }
    return push_check_room(store, -(ptrdiff_t)cost_gone, store->config.table_bytes / 16, name,
                           plan->err);
}

/* What a batch that replaces leaves out is known at its end; until then the batch itself must
 * fit. */
static int check_size(const struct push_plan *plan, const char *name, size_t n_gone,
                      size_t cost_gone) {
    size_t max = plan->store->config.limits.max_owner_series;
    if (rest_of(plan->owner->n_series, n_gone) > max) {
        return error_set(plan->err, -E2BIG,
                         "%s: %s would have more than %zu series (push.max-series-per-plugin)",
                         name, plan->owner->name, max);
    }
    return check_bytes(plan, name, cost_gone);
}

/* ---- replaced series ---- */

static void drop_series(struct push_plan *plan, struct push_series *series) {
    series = push_series_base(series);
    if (series->dropped != plan->store->batch) {
        series->dropped = plan->store->batch;
        note(&plan->dropped, &plan->cap_dropped, &plan->n_dropped, series);
        push_series_charge(plan->store, series, -1);
    }
}

/* Whether the process that pushed the series has ended, and a new one pushes. The new one may give
 * it another type or other buckets, as its author has changed the program. */
static bool is_left(const struct push_plan *plan, struct push_series *series) {
    enum { A_MINUTE_MS = 60 * 1000 };
    const struct push_store *store = plan->store;
    const struct push_series *base = push_series_base(series);
    uint64_t start = plan->batch->start;
    if (start == 0 || start == base->start || series->owner->n_refs > 1) {
        return false;
    }
    /* A client of HTTP has no connection: it is assumed to run until a minute after a push. */
    return push_start_is_connected(store, start) ? !push_start_is_connected(store, base->start)
                                                 : plan->now_ms - base->updated_ms >= A_MINUTE_MS;
}

/* Whether the batch may replace the family: all series are this owner's, and the batch replaces, or
 * comes from a new process. The latter can be tried with every line, so not many series are
 * checked. */
static bool may_replace(const struct push_plan *plan, const struct push_family *family) {
    enum { MANY_SERIES = 1000 };
    if (family->batch == plan->store->batch ||
        (!is_replacing(plan) && family->n_series > MANY_SERIES)) {
        return false;
    }
    for (struct push_link *i = family->series.next; i != &family->series; i = i->next) {
        struct push_series *series = CONTAINER_OF(i, struct push_series, in_family);
        if (series->owner != plan->owner || push_series_base(series)->batch == plan->store->batch ||
            !(is_replacing(plan) || is_left(plan, series))) {
            return false;
        }
    }
    return true;
}

static const char *article(enum push_type type) {
    return type == PUSH_UNTYPED ? "an" : "a";
}

/* The series that stands for the family in messages, and gives others its bounds. */
static const struct push_series *first_of(const struct push_family *family) {
    return family->n_series > 0 ? CONTAINER_OF(family->series.next, struct push_series, in_family)
                                : NULL;
}

static int refuse_type(const struct push_plan *plan, const struct push_family *family) {
    const struct push_series *first = first_of(family);
    const char *name = plan->update->name, *owner = plan->owner->name;
    const char *has = first != NULL ? first->owner->name : owner;
    const char *type = push_type_words[plan->type], *a = article(plan->type);
    bool is_rate = first != NULL && first->mean_of != NULL;
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

/* Drops a family whose name is needed, if the batch may replace it. */
static int drop_family(struct push_plan *plan, struct push_family *family) {
    if (!may_replace(plan, family)) {
        return refuse_type(plan, family);
    }
    family->dropped = plan->store->batch;
    for (struct push_link *i = family->series.next; i != &family->series; i = i->next) {
        drop_series(plan, CONTAINER_OF(i, struct push_series, in_family));
    }
    return 0;
}

/* ---- families ---- */

/* Frees all names that the family is going to have. */
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
    const struct push_family_spec spec = {
        .name = name,
        .help = plan->update->help,
        .type = of,
        .has_short_name = plan->type == PUSH_COUNTER && !plan->owner->group,
        .of_group = plan->owner->group,
    };
    int r = push_check_name(plan->update, plan->err);
    r = r == 0 ? take_names(plan, name, of, spec.has_short_name) : r;
    return r == 0 ? push_family_create(plan->store, &spec, ret_family, plan->err) : r;
}

/* Finds or makes the family of that name and type. */
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

/* The names of a rate's gauge and of a counter, whether or not the update has _total. */
struct names {
    char base[PUSH_MAX_NAME + 16], total[PUSH_MAX_NAME + 16];
};

/* By memcpy: sprintf takes longer than the rest of an update. */
static void derive_names(const char *name, struct names *ret_names) {
    size_t len = push_base_len(name);
    memcpy(ret_names->base, name, len);
    ret_names->base[len] = '\0';
    memcpy(ret_names->total, name, len);
    memcpy(ret_names->total + len, "_total", sizeof("_total"));
}

static struct push_family *counter_family(const struct push_plan *plan) {
    struct names names;
    derive_names(plan->update->name, &names);
    return push_family_find(plan->store, names.total);
}

/* Whether an update of a gauge's family means a rate. A new series is a rate if it counts and
 * there is a counter of that name. */
static bool means_rate(const struct push_plan *plan, const struct push_family *family) {
    enum push_op op = plan->update->op;
    const struct push_series *series =
        push_series_find(plan->store, family, plan->owner, plan->update, plan->labels_hash);
    if (series != NULL && series->owner == plan->owner) {
        return series->mean_of != NULL;
    }
    return !plan->owner->group &&
           (op == PUSH_TOTAL || (op == PUSH_INC && counter_family(plan) != NULL));
}

/* Finds the type of an update that has none. */
static int find_type(struct push_plan *plan) {
    const struct push_family *family = push_family_find(plan->store, plan->update->name);
    if (family == NULL && !plan->owner->group) {
        family = counter_family(plan);
        family = family != NULL && family->has_short_name ? family : NULL;
    }
    if (family == NULL) {
        return error_set(plan->err, -EINVAL, "%s: its first use must say the type",
                         plan->update->name);
    }
    plan->type = family->type == PUSH_GAUGE && means_rate(plan, family) ? PUSH_RATE : family->type;
    return 0;
}

/* Finds or makes the family that an update names. A plugin's counter is called …_total, and no
 * other family has the name without; a rate has the name of its gauge. */
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

static int check_labels(const struct push_plan *plan) {
    const struct push_update *update = plan->update;
    int r = push_check_labels(plan->owner, plan->type, update, plan->err);
    return r < 0 ? r
                 : push_claim_check_labels(plan->store, plan->owner, update->name, update->labels,
                                           update->n_labels, plan->err);
}

/* Finds the owner's series of the family, NULL: none. A series of another owner with the same
 * labels is dropped if its owner is less well known. */
static int find_series(struct push_plan *plan, const struct push_family *family,
                       struct push_series **ret_series) {
    struct push_series *series =
        push_series_find(plan->store, family, plan->owner, plan->update, plan->labels_hash);
    *ret_series = series;
    if (series == NULL || series->owner == plan->owner) {
        return 0;
    }
    int r = check_labels(plan);
    if (r < 0) {
        return r;
    }
    if (push_series_base(series)->batch == plan->store->batch ||
        !push_claim_outranks(plan->owner, series->owner)) {
        return error_set(plan->err, -EEXIST, "%s{%s}: is a series of %s, not of %s",
                         plan->update->name, series->labels->text, series->owner->name,
                         plan->owner->name);
    }
    drop_series(plan, series);
    *ret_series = NULL;
    return 0;
}

static const double default_bounds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

/* The bounds of a new series: its own, else those of its family, else the usual ones. */
static void choose_bounds(const struct push_family *family, const struct push_update *update,
                          const double **ret_bounds, size_t *ret_n) {
    bool has_bounds = push_type_is_composite(family->type);
    *ret_bounds = has_bounds ? update->bounds : NULL;
    *ret_n = has_bounds ? update->n_bounds : 0;
    if (update->bounds != NULL || family->type != PUSH_HISTOGRAM) {
        return;
    }
    const struct push_series *first = first_of(family);
    *ret_bounds = first != NULL ? first->bounds : default_bounds;
    *ret_n = first != NULL ? first->n_bounds : ARRAY_LEN(default_bounds);
}

/* That take as long as an update. Each new series copies the rendered labels of its owner. */
enum { FIGURES_OF_UPDATE = 16, BYTES_OF_UPDATE = 512, OWNER_BYTES_OF_UPDATE = 256 };

/* Makes a series of the family; of a rate, `counter` is the one that the gauge belongs to. */
static int add_series(struct push_plan *plan, struct push_family *family,
                      struct push_series *counter, const double *bounds, size_t n_bounds,
                      struct push_series **ret_series) {
    const struct push_update *update = plan->update;
    const struct push_series_spec spec = {
        .family = family,
        .owner = plan->owner,
        .mean_of = counter,
        .labels = update->labels,
        .n_labels = update->n_labels,
        .labels_hash = plan->labels_hash,
        .bounds = bounds,
        .n_bounds = n_bounds,
    };
    plan->weight += plan->owner->rendered->len / OWNER_BYTES_OF_UPDATE + (counter != NULL ? 1 : 0);
    if (plan->weight > plan->max_weight) {
        return push_update_fail_many(plan->err);
    }
    int r = push_series_create(plan->store, &spec, ret_series, plan->err);
    if (r < 0) {
        return error_set(plan->err, r, "%s: %s", update->name,
                         plan->err != NULL ? plan->err->text : "");
    }
    note(&plan->made, &plan->cap_made, &plan->n_made, *ret_series);
    return is_replacing(plan) ? check_size(plan, update->name, plan->n_before, plan->cost_before)
                              : check_size(plan, update->name, 0, 0);
}

static int make_series(struct push_plan *plan, struct push_family *family,
                       struct push_series **ret_series) {
    const struct push_update *update = plan->update;
    const double *bounds;
    size_t n_bounds;
    choose_bounds(family, update, &bounds, &n_bounds);
    plan->weight += update->bounds == NULL ? n_bounds / FIGURES_OF_UPDATE : 0;
    int r = check_labels(plan);
    r = r < 0 ? r : push_check_bounds(update, bounds, n_bounds, plan->err);
    return r < 0 ? r : add_series(plan, family, NULL, bounds, n_bounds, ret_series);
}

/* Finds or makes the counter of a new rate, and makes the gauge. */
static int make_rate(struct push_plan *plan, struct push_family *gauges,
                     struct push_series **ret_counter) {
    struct names names;
    struct push_family *counters = NULL;
    struct push_series *gauge;
    derive_names(plan->update->name, &names);
    int r = family_for(plan, names.total, PUSH_COUNTER, &counters);
    r = r < 0 ? r : find_series(plan, counters, ret_counter);
    r = r == 0 && *ret_counter == NULL ? make_series(plan, counters, ret_counter) : r;
    return r < 0 ? r : add_series(plan, gauges, *ret_counter, NULL, 0, &gauge);
}

static int refuse_twice(const struct push_plan *plan, const struct push_series *series) {
    return error_set(plan->err, -EINVAL, "%s{%s}: given twice", plan->update->name,
                     series->labels->text);
}

static bool has_other_bounds(const struct push_series *series, const struct push_update *update) {
    if (update->bounds == NULL || !push_type_is_composite(series->family->type)) {
        return false;
    }
    bool same = series->n_bounds == update->n_bounds;
    for (size_t i = 0; same && i < series->n_bounds; i++) {
        same = series->bounds[i] == update->bounds[i];
    }
    return !same;
}

/* A new process may turn a gauge into a rate, or back, and change buckets; a series that is set may
 * change them as well: another series replaces it. Not twice in a batch. */
static int drop_if_changed(struct push_plan *plan, struct push_series *series, bool *ret_dropped) {
    const struct push_update *update = plan->update;
    bool was_rate = series->mean_of != NULL;
    bool changes_kind = was_rate != (plan->type == PUSH_RATE);
    bool is_named = push_series_base(series)->batch == plan->store->batch;
    *ret_dropped = false;
    if (!changes_kind && !has_other_bounds(series, update)) {
        return 0;
    }
    if (is_named && update->op == PUSH_SET) {
        return refuse_twice(plan, series);
    }
    if (!is_named && (is_left(plan, series) || (!changes_kind && update->op == PUSH_SET))) {
        drop_series(plan, series);
        *ret_dropped = true;
        return 0;
    }
    return changes_kind ? error_set(plan->err, -EEXIST, "%s: is a %s of %s, not a %s", update->name,
                                    was_rate ? "rate" : "gauge", series->owner->name,
                                    was_rate ? "gauge" : "rate")
                        : error_set(plan->err, -EEXIST,
                                    "%s: has other buckets, set at its first use", update->name);
}

/* Finds or makes the series whose values the update changes: of a rate, the counter. */
static int series_for(struct push_plan *plan, struct push_series **ret_series) {
    struct push_family *family = NULL;
    struct push_series *series = NULL;
    bool dropped = false;
    int r = plan->type == PUSH_UNSAID ? find_type(plan) : 0;
    r = r < 0 ? r : find_target(plan, &family);
    r = r < 0 ? r : find_series(plan, family, &series);
    r = r == 0 && series != NULL ? drop_if_changed(plan, series, &dropped) : r;
    if (r == 0 && series != NULL && !dropped) {
        *ret_series = push_series_base(series);
        return 0;
    }
    if (r == 0) {
        r = plan->type == PUSH_RATE ? make_rate(plan, family, ret_series)
                                    : make_series(plan, family, ret_series);
    }
    return r;
}

/* ---- totals ---- */

static int total_for(struct push_plan *plan, struct push_series *series,
                     struct push_total **ret_total) {
    struct push_total *total = series->totals;
    while (total != NULL && total->start != plan->batch->start) {
        total = total->next;
    }
    *ret_total = total;
    if (total != NULL) {
        return 0;
    }
    int r = push_total_create(plan->store, series, plan->batch->start, ret_total, plan->err);
    if (r < 0) {
        return r;
    }
    note(&plan->totalled, &plan->cap_totalled, &plan->n_totalled, series);
    return check_bytes(plan, plan->update->name, is_replacing(plan) ? plan->cost_before : 0);
}

/* ---- the first step ---- */

/* The store has these of every group. */
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
    if (r != 0) {
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

/* Drops what a batch that replaces leaves out; what remains must fit. */
static int drop_omitted(struct push_plan *plan, struct push_owner *owner) {
    uint64_t batch = plan->store->batch;
    if (!is_replacing(plan)) {
        return 0;
    }
    for (struct push_link *i = owner->series.next; i != &owner->series; i = i->next) {
        struct push_series *series = CONTAINER_OF(i, struct push_series, of_owner);
        bool is_named = plan->batch->mode == PUSH_REPLACE_ALL || series->family->batch == batch;
        if (is_named && series->batch != batch) {
            drop_series(plan, series);
        }
    }
    plan->owner = owner;
    return plan->n_made > 0 ? check_size(plan, "push", 0, 0) : 0;
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
    plan->n_made = plan->n_totalled = plan->n_dropped = 0;
    plan->newest = plan->store->number;
    plan->n_before = owner->n_series;
    plan->cost_before = owner->share != NULL ? owner->share->cost : owner->cost;
    plan->weight = weigh(batch);
    if (plan->weight > plan->max_weight) {
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
    return drop_omitted(plan, owner);
}

/* The last family that the batch made; NULL: none. */
static struct push_family *newest_family(const struct push_plan *plan) {
    const struct push_link *list = &plan->store->families;
    struct push_family *family = CONTAINER_OF(list->prev, struct push_family, link);
    return list->prev != list && family->number > plan->newest ? family : NULL;
}

static void undo(struct push_plan *plan) {
    struct push_store *store = plan->store;
    struct push_family *family;
    for (size_t i = 0; i < plan->n_totalled; i++) {
        push_total_destroy(store, plan->totalled[i], &plan->totalled[i]->totals);
    }
    for (size_t i = plan->n_made; i > 0; i--) { /* a rate's gauge before its counter */
        push_series_destroy_one(store, plan->made[i - 1]);
    }
    while ((family = newest_family(plan)) != NULL) {
        push_family_destroy(store, family);
    }
    for (size_t i = 0; i < plan->n_dropped; i++) {
        push_series_charge(store, plan->dropped[i], 1);
    }
    store->batch++; /* nothing is dropped */
}

/* ---- the second step ---- */

static void set_ttl(struct push_store *store, struct push_series *series, int64_t ttl_ms) {
    struct push_owner *owner = series->owner;
    owner->n_with_ttl -= series->ttl_ms > 0 ? 1 : 0;
    owner->n_with_ttl += ttl_ms > 0 ? 1 : 0;
    series->ttl_ms = ttl_ms;
    push_table_write(store->table, &(struct push_change){series->ttl, (double)ttl_ms}, 1);
}

/* A plugin's update without a time to live keeps the present one. A group's series never expire
 * unless their last push had one. */
static bool changes_ttl(const struct push_series *series, const struct push_update *update) {
    bool given = update->ttl_ms != PUSH_TTL_DEFAULT;
    return given ? update->ttl_ms != series->ttl_ms : series->owner->group && series->ttl_ms > 0;
}

static void move_to_front(struct push_store *store, struct push_series *series,
                          struct push_total *total) {
    struct push_total **link = &series->totals;
    if (*link == total) {
        return;
    }
    const struct push_change change = {total->rank, push_total_rank(series)};
    push_table_write(store->table, &change, 1);
    while (*link != total) {
        link = &(*link)->next;
    }
    *link = total->next;
    total->next = series->totals;
    series->totals = total;
}

static void perform(struct push_plan *plan, const struct step *step,
                    const struct push_update *update) {
    struct push_store *store = plan->store;
    struct push_series *series = step->series;
    struct push_family *named = series->mean != NULL ? series->mean->family : series->family;
    push_value_apply(store, series, step->total, update, plan->now_ms);
    if (step->total != NULL) {
        move_to_front(store, series, step->total);
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

/* Commits what is new, each entry after those that it refers to. A series that is set gets its
 * value first: not even after a crash may it have another one. */
static void commit_new(struct push_plan *plan) {
    struct push_store *store = plan->store;
    for (size_t i = 0; plan->n_made > 0 && i < plan->batch->n_updates; i++) {
        struct push_series *series = plan->steps[i].series;
        if (series != NULL && plan->batch->updates[i].op == PUSH_SET &&
            series->number > plan->newest) {
            push_value_apply(store, series, NULL, &plan->batch->updates[i], plan->now_ms);
        }
    }
    for (struct push_link *i = store->families.prev; i != &store->families; i = i->prev) {
        struct push_family *family = CONTAINER_OF(i, struct push_family, link);
        if (family->number <= plan->newest) {
            break;
        }
        push_family_commit(store, family);
    }
    for (size_t i = 0; i < plan->n_made; i++) {
        push_table_commit(store->table, plan->made[i]->entry);
    }
    for (size_t i = 0; i < plan->n_totalled; i++) {
        push_table_commit(store->table, plan->totalled[i]->totals->entry);
        push_total_forget_oldest(store, plan->totalled[i]);
    }
}

static void note_push(struct push_store *store, struct push_owner *owner, double seconds) {
    if (owner->group && owner->push_seconds != seconds) {
        owner->push_seconds = seconds;
        push_owner_save(store, owner);
    }
}

/* Notes the time of the push for the batch's own group, and for those that its updates name. */
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
    commit_new(plan);
    for (size_t i = 0; i < plan->batch->n_updates; i++) {
        if (plan->steps[i].series != NULL) {
            perform(plan, &plan->steps[i], &plan->batch->updates[i]);
        }
    }
    for (size_t i = 0; i < plan->n_dropped; i++) {
        push_series_charge(plan->store, plan->dropped[i], 1);
        push_series_destroy(plan->store, plan->dropped[i]);
    }
    plan->store->stats.updates += plan->batch->n_updates;
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
        free(plan->made);
        free(plan->totalled);
        free(plan->dropped);
        free(plan);
    }
}

static int apply(struct push_store *store, struct push_owner *owner, const struct push_batch *batch,
                 bool is_trial, size_t *ret_failed, struct error *err) {
    struct push_plan *plan = store->plan;
    size_t failed = 0;
    push_store_lock(store);
    store->batch++;
    store->stats.changes++;
    plan->batch = batch;
    plan->err = err;
    plan->now_ms = push_store_now_ms(store);
    plan->max_weight = is_trial ? PUSH_MAX_UPDATES / 2 : PUSH_MAX_UPDATES;
    int r = make_plan(plan, owner, &failed);
    if (r < 0 || is_trial) {
        undo(plan);
    } else {
        carry_out(plan, owner);
    }
    if (r < 0) {
        push_store_count_refused(store, r);
    }
    owner->seen_ms = plan->now_ms;
    push_store_unlock(store);
    if (r < 0 && ret_failed != NULL) {
        *ret_failed = failed;
    }
    return r;
}

int push_store_apply(struct push_store *store, struct push_owner *owner,
                     const struct push_batch *batch, size_t *ret_failed, struct error *err) {
    return apply(store, owner, batch, false, ret_failed, err);
}

int push_store_try(struct push_store *store, struct push_owner *owner,
                   const struct push_batch *batch, size_t *ret_failed, struct error *err) {
    return apply(store, owner, batch, true, ret_failed, err);
}
