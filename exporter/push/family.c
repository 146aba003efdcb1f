#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/container_of.h"
#include "exporter/push/store_private.h"

/* ---- types ---- */

static const char *const type_names[] = {
    [PUSH_UNSAID] = "metric", [PUSH_UNTYPED] = "untyped metric", [PUSH_COUNTER] = "counter",
    [PUSH_GAUGE] = "gauge",   [PUSH_HISTOGRAM] = "histogram",    [PUSH_SUMMARY] = "summary",
    [PUSH_RATE] = "rate",
};

const char *push_type_name(enum push_type type) {
    return type == PUSH_UNTYPED ? "untyped" : type_names[type];
}

static const enum metric_type exported_types[] = {
    [PUSH_UNTYPED] = METRIC_UNTYPED, [PUSH_COUNTER] = METRIC_COUNTER,
    [PUSH_GAUGE] = METRIC_GAUGE,     [PUSH_HISTOGRAM] = METRIC_HISTOGRAM,
    [PUSH_SUMMARY] = METRIC_SUMMARY, [PUSH_RATE] = METRIC_GAUGE,
};

/* ---- names ---- */

/* One that is spelled so, the next with every call; `cursor` begins as 0. */
static struct push_name *next_name(const struct push_store *store, const char *text, uint64_t hash,
                                   size_t *cursor) {
    struct push_name *name;
    while ((name = hash_index_next(&store->names, hash, cursor)) != NULL) {
        if (strcmp(name->text, text) == 0) {
            return name;
        }
    }
    return NULL;
}

static struct push_name *find_name(const struct push_store *store, const char *text,
                                   uint64_t hash) {
    size_t cursor = 0;
    return next_name(store, text, hash, &cursor);
}

static void add_name(const struct push_store *store, struct push_family *family, const char *base,
                     size_t len, const char *ending, bool callable) {
    struct buf text = {0};
    buf_add(&text, base, len);
    buf_add_str(&text, ending);
    struct push_name *name = &family->names[family->n_names++];
    name->family = family;
    name->callable = callable;
    name->text = buf_take(&text);
    name->hash = name->text != NULL ? push_hash_text(store, name->text) : 0;
}

static size_t length_without_total(const char *name) {
    size_t len = strlen(name);
    size_t ending = strlen("_total");
    return len > ending && strcmp(name + len - ending, "_total") == 0 ? len - ending : len;
}

/* The names a family takes up; the first is its own. Plugins may leave _total out: that name is
 * taken too, as nobody should use it for something else. */
static void name_family(const struct push_store *store, struct push_family *family,
                        const char *name) {
    size_t len = strlen(name);
    size_t base = length_without_total(name);
    if (family->type == PUSH_COUNTER && !family->plain_names) {
        add_name(store, family, name, base, "_total", true);
        add_name(store, family, name, base, "", true);
        return;
    }
    if (family->type == PUSH_RATE) {
        add_name(store, family, name, base, "", true);
        add_name(store, family, name, base, "_total", true);
        return;
    }
    add_name(store, family, name, len, "", true);
    if (family->type == PUSH_HISTOGRAM || family->type == PUSH_SUMMARY) {
        add_name(store, family, name, len, "_count", false);
        add_name(store, family, name, len, "_sum", false);
    }
    if (family->type == PUSH_HISTOGRAM) {
        add_name(store, family, name, len, "_bucket", false);
    }
}

/* ---- two families of one name ---- */

/* What a rate exports under its own name is a gauge: others may have a gauge of that name. */
static bool go_together(enum push_type a, enum push_type b) {
    return (a == PUSH_GAUGE && b == PUSH_RATE) || (a == PUSH_RATE && b == PUSH_GAUGE);
}

/* Whether an update of that type may stand beside the family under its first name: as another
 * owner's. */
static bool may_join(const struct push_store *store, const struct push_name *name,
                     enum push_type type, const struct push_owner *owner) {
    const struct push_family *family = name->family;
    return name == &family->names[0] && go_together(family->type, type) &&
           !push_member_is(store, family, owner);
}

/* ---- conflicts ---- */

/* While a store is loaded, families come before their series. */
static const char *first_owner(const struct push_family *family) {
    if (family->n_series == 0) {
        return "nobody";
    }
    return CONTAINER_OF(family->series.next, struct push_series, of_family)->owner->name;
}

static const char *article(enum push_type type) {
    return type == PUSH_UNTYPED ? "an" : "a";
}

static int refuse(const struct push_family *family, const struct push_name *name,
                  const struct push_owner *owner, const struct push_update *update,
                  struct error *err) {
    const char *type = type_names[family->type];
    if (!name->callable || strcmp(name->text, update->name) != 0) {
        return error_set(err, -EEXIST, "%s: as %s %s of %s it would clash with %s, %s %s of %s",
                         update->name, article(update->type), type_names[update->type], owner->name,
                         family->desc->main.name, article(family->type), type, first_owner(family));
    }
    const char *has = first_owner(family);
    bool same = strcmp(has, owner->name) == 0;
    return error_set(err, -EEXIST, "%s: is %s %s of %s, not %s %s%s%s", update->name,
                     article(family->type), type, has, article(update->type),
                     type_names[update->type], same ? "" : " of ", same ? "" : owner->name);
}

/* Whether the family is this owner's alone, and a batch may put another in its place: one that
 * replaces, or the first of a new process. The latter can be tried with every line, so it is not
 * looked for among many series. */
static bool may_go(const struct push_store *store, const struct push_family *family,
                   const struct push_owner *owner, bool replace) {
    enum { MANY_SERIES = 1000 };
    if (!replace && family->n_series > MANY_SERIES) {
        return false;
    }
    for (struct push_link *i = family->series.next; i != &family->series; i = i->next) {
        const struct push_series *series = CONTAINER_OF(i, struct push_series, of_family);
        if (series->owner != owner || !(replace || push_series_is_left(store, series))) {
            return false;
        }
    }
    return family->n_series > 0;
}

static bool hide(struct push_store *store, struct push_family *family) {
    if (store->n_hidden == store->cap_hidden) {
        size_t cap = 2 * store->cap_hidden + 4;
        struct push_family **hidden = reallocarray(store->hidden, cap, sizeof(*hidden));
        if (hidden == NULL) {
            return false;
        }
        store->hidden = hidden;
        store->cap_hidden = cap;
    }
    store->hidden[store->n_hidden++] = family;
    family->hidden = true;
    for (size_t i = 0; i < family->n_names; i++) {
        hash_index_remove(&store->names, family->names[i].hash, &family->names[i]);
    }
    return true;
}

void push_family_unhide(struct push_store *store, struct push_family *family) {
    family->hidden = false;
    for (size_t i = 0; i < family->n_names; i++) {
        hash_index_add(&store->names, family->names[i].hash, &family->names[i]);
    }
}

/* A family may get another type, unless the batch has just used it itself. */
static int make_way(struct push_store *store, const struct push_name *name,
                    const struct push_owner *owner, const struct push_update *update, bool replace,
                    struct error *err) {
    struct push_family *family = name->family;
    if (family->batch == store->batch || !may_go(store, family, owner, replace)) {
        return refuse(family, name, owner, update, err);
    }
    return hide(store, family) ? 0 : error_set(err, -ENOMEM, "%s: out of memory", update->name);
}

/* ---- the family of an update ---- */

/* Snapshots refer to a description while they are rendered: it is replaced, never changed. */
static bool describe(struct push_store *store, struct push_family *family, const char *help) {
    size_t size = strlen(help) + 1;
    struct push_desc *desc = malloc(sizeof(*desc) + size);
    if (desc == NULL) {
        return false;
    }
    memcpy(desc->help, help, size);
    desc->main = (struct metric_desc){
        .name = family->names[0].text,
        .help = desc->help,
        .type = exported_types[family->type],
    };
    desc->total = (struct metric_desc){
        .name = family->names[1].text,
        .help = desc->help,
        .type = METRIC_COUNTER,
    };
    push_bury(store, family->desc, family->collected);
    family->desc = desc;
    return true;
}

static void free_family(struct push_store *store, struct push_family *family) {
    for (size_t i = 0; i < family->n_names; i++) {
        push_bury(store, family->names[i].text, family->collected);
    }
    push_bury(store, family->desc, family->collected);
    free(family);
}

static int refuse_reserved(const char *name, struct error *err) {
    return error_set(err, -EPERM, "%s: is a metric of waap's own, choose another name", name);
}

/* Sees to those that have the name already. */
static int settle_name(struct push_store *store, struct push_family *family,
                       const struct push_name *name, const struct push_owner *owner,
                       const struct push_update *update, bool replace, struct error *err) {
    size_t cursor = 0;
    const struct push_name *other;
    while ((other = next_name(store, name->text, name->hash, &cursor)) != NULL) {
        if (name == &family->names[0] && may_join(store, other, family->type, owner)) {
            family->twin = other->family;
            continue;
        }
        int r = make_way(store, other, owner, update, replace, err);
        if (r < 0) {
            return r;
        }
        cursor = 0; /* the index has changed */
    }
    return 0;
}

static int settle_names(struct push_store *store, struct push_family *family,
                        const struct push_owner *owner, const struct push_update *update,
                        bool replace, struct error *err) {
    for (size_t i = 0; i < family->n_names; i++) {
        struct push_name *name = &family->names[i];
        if (name->text == NULL) {
            return error_set(err, -ENOMEM, "%s: out of memory", update->name);
        }
        if (push_reserved_has(&store->reserved, name->text)) {
            return refuse_reserved(name->text, err);
        }
        int r = settle_name(store, family, name, owner, update, replace, err);
        if (r < 0) {
            return r;
        }
    }
    const char *no_help = owner->group ? "" : "Pushed without a help text";
    family->has_help = update->help != NULL;
    bool ok = describe(store, family, family->has_help ? update->help : no_help) &&
              hash_index_reserve(&store->names, family->n_names);
    return ok ? push_persist_family(store, family, 0, err)
              : error_set(err, -ENOMEM, "%s: out of memory", update->name);
}

static int create_family(struct push_store *store, const struct push_owner *owner,
                         const struct push_update *update, bool replace,
                         struct push_family **ret_family, struct error *err) {
    int r = push_check_family(store, update, err);
    if (r < 0) {
        return r;
    }
    struct push_family *family = calloc(1, sizeof(*family));
    if (family == NULL) {
        return error_set(err, -ENOMEM, "%s: out of memory", update->name);
    }
    family->type = update->type;
    family->plain_names = owner->group;
    push_link_init(&family->series);
    name_family(store, family, update->name);
    r = settle_names(store, family, owner, update, replace, err);
    if (r < 0) {
        free_family(store, family);
        return r;
    }
    for (size_t i = 0; i < family->n_names; i++) {
        hash_index_add(&store->names, family->names[i].hash, &family->names[i]);
    }
    if (family->twin != NULL) {
        family->twin->twin = family;
    }
    family->hash = family->names[0].hash;
    family->number = ++store->number;
    push_link_append(&store->families, &family->link);
    *ret_family = family;
    return 0;
}

struct push_family *push_family_find(struct push_store *store, const char *name) {
    const struct push_name *found = find_name(store, name, push_hash_text(store, name));
    return found != NULL ? found->family : NULL;
}

static bool has_it(const struct push_store *store, const struct push_family *family,
                   const struct push_owner *owner, const struct push_update *update) {
    uint64_t hash;
    return push_series_find(store, family, owner, update, &hash) != NULL;
}

/* The name that the update means where two families have it: that of the series it is about, else
 * that of its type or of what the owner has. NULL: nobody has it. */
static const struct push_name *choose_name(const struct push_store *store,
                                           const struct push_owner *owner,
                                           const struct push_update *update) {
    const struct push_name *name =
        find_name(store, update->name, push_hash_text(store, update->name));
    struct push_family *twin = name != NULL ? name->family->twin : NULL;
    if (twin == NULL || twin->hidden || name != &name->family->names[0]) {
        return name;
    }
    bool here = has_it(store, name->family, owner, update);
    bool there = has_it(store, twin, owner, update);
    if (!here && !there) { /* a further series of what the owner has, else of its own type */
        here = push_member_is(store, name->family, owner);
        there = !here && (push_member_is(store, twin, owner) || twin->type == update->type);
    }
    return there ? &twin->names[0] : name;
}

int push_family_for(struct push_store *store, const struct push_owner *owner,
                    const struct push_update *update, bool replace, struct push_family **ret_family,
                    struct error *err) {
    const struct push_name *name = choose_name(store, owner, update);
    if (name == NULL || may_join(store, name, update->type, owner)) {
        return create_family(store, owner, update, replace, ret_family, err);
    }
    struct push_family *family = name->family;
    bool as_exported = name == &family->names[0];
    bool same_type = update->type == PUSH_UNSAID || update->type == family->type;
    if (name->callable && same_type && (as_exported || !owner->group)) {
        *ret_family = family;
        return family->has_help ? 0 : push_check_help(store, update, err);
    }
    /* Whose way it was is hidden now: there may be another of that name to join. */
    int r = make_way(store, name, owner, update, replace, err);
    return r < 0 ? r : push_family_for(store, owner, update, replace, ret_family, err);
}

void push_family_take_help(struct push_store *store, struct push_family *family, const char *help) {
    struct push_entry *old = family->entry;
    family->has_help = describe(store, family, help);
    if (family->has_help && push_persist_family(store, family, old->id, NULL) == 0) {
        push_table_commit(store->table);
        push_series_pay_family(family, old);
        push_table_kill(store->table, old);
    }
}

void push_family_destroy(struct push_store *store, struct push_family *family) {
    if (family->twin != NULL && family->twin->twin == family) {
        family->twin->twin = NULL;
    }
    for (size_t i = 0; !family->hidden && i < family->n_names; i++) {
        hash_index_remove(&store->names, family->names[i].hash, &family->names[i]);
    }
    push_table_kill(store->table, family->entry);
    push_link_remove(&family->link);
    free_family(store, family);
}
