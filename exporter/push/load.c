#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/container_of.h"
#include "exporter/core/memory.h"
#include "exporter/push/private.h"

/* Restores owners, families and series from entries. These come from files, so all is checked. */

enum { LOAD_MAX_LABELS = 128, N_PASSES = 3 };

struct loader {
    struct push_store *store;
    struct push_load_report *report;
    struct hash_index owners, families, series; /* by their numbers in the file */
    int64_t now_ms;
    const void *pages;
    size_t len;
    int pass; /* of several: entries that others refer to are first */
};

static void *find(const struct hash_index *index, uint32_t id) {
    size_t cursor = 0;
    return hash_index_next(index, id, &cursor);
}

/* ---- keys ---- */

struct key {
    const char *at, *end;
};

static struct key key_of(const struct push_entry *entry) {
    const char *key = (const char *)(entry->words + entry->n_words);
    return (struct key){key, key + entry->key_len};
}

static int take_text(struct key *key, const char **ret_text) {
    const char *end = memchr(key->at, '\0', (size_t)(key->end - key->at));
    if (end == NULL) {
        return -EINVAL;
    }
    *ret_text = key->at;
    key->at = end + 1;
    return 0;
}

static int take_labels(struct key *key, struct label labels[static LOAD_MAX_LABELS],
                       size_t *ret_n) {
    size_t n = 0;
    while (key->at < key->end) {
        if (n == LOAD_MAX_LABELS || take_text(key, &labels[n].name) < 0 ||
            take_text(key, &labels[n].value) < 0) {
            return -EINVAL;
        }
        n++;
    }
    *ret_n = n;
    return 0;
}

/* ---- each kind ---- */

static int load_owner(struct loader *loader, const struct push_entry *entry, uint32_t id) {
    struct key key = key_of(entry);
    struct label labels[LOAD_MAX_LABELS];
    size_t n = 0;
    struct push_owner *owner = NULL;
    int r = take_labels(&key, labels, &n);
    if (r == 0) {
        r = push_owner_restore(loader->store, (entry->flags & PUSH_OWNER_GROUP) != 0, labels, n,
                               entry->words, entry->n_words, &owner);
    }
    if (r == 0) {
        hash_index_add(&loader->owners, id, owner);
    }
    return r;
}

static bool ends_in_total(const char *name) {
    return push_base_len(name) < strlen(name);
}

/* A counter may have been pushed without its ending, so that only the rest has to be short. */
static bool is_valid_name(const char *name) {
    char pushed[PUSH_MAX_NAME + sizeof("_total")];
    size_t len = strlen(name);
    if (len >= sizeof(pushed)) {
        return false;
    }
    sprintf(pushed, "%.*s", (int)(len > PUSH_MAX_NAME ? push_base_len(name) : len), name);
    return push_check_name(&(struct push_update){.name = pushed}, NULL) == 0;
}

/* Whether no family has a name that this one is going to have. */
static bool has_free_names(const struct push_store *store, const struct push_family_spec *spec) {
    char text[PUSH_MAX_NAME + 16];
    const char *next;
    for (size_t i = 0; (next = push_family_next_name(spec->name, spec->type, spec->has_short_name,
                                                     i, text)) != NULL;
         i++) {
        if (push_is_reserved(store, next) || push_family_of_name(store, next) != NULL) {
            return false;
        }
    }
    return true;
}

static int load_family(struct loader *loader, const struct push_entry *entry, uint32_t id) {
    struct push_store *store = loader->store;
    struct key key = key_of(entry);
    struct push_family_spec spec = {
        .type = entry->detail,
        .has_short_name = (entry->flags & PUSH_FAMILY_SHORT_NAME) != 0,
        .of_group = (entry->flags & PUSH_FAMILY_OF_GROUP) != 0,
    };
    if (take_text(&key, &spec.name) < 0 || entry->detail <= PUSH_UNSAID ||
        entry->detail >= PUSH_RATE || !is_valid_name(spec.name) ||
        (spec.has_short_name && !ends_in_total(spec.name)) || !has_free_names(store, &spec)) {
        return -EINVAL;
    }
    struct push_family *family = NULL;
    int r = push_family_create(store, &spec, &family, NULL);
    if (r == 0) {
        push_family_commit(store, family);
        hash_index_add(&loader->families, id, family);
    }
    return r;
}

static int load_help(struct loader *loader, const struct push_entry *entry, uint32_t id) {
    (void)id;
    struct push_family *family = find(&loader->families, entry->detail);
    struct key key = key_of(entry);
    struct push_update update = {.name = ""};
    if (family == NULL || family->has_help || take_text(&key, &update.help) < 0 ||
        push_check_help(&update, NULL) < 0) {
        return -EINVAL;
    }
    push_family_take_help(loader->store, family, update.help);
    return 0;
}

/* The key begins with the bounds, not aligned. */
static int take_bounds(struct key *key, const struct push_family *family, size_t n_values,
                       double bounds[static PUSH_MAX_WORDS], size_t *ret_n) {
    bool is_composite = push_type_is_composite(family->type);
    size_t n = is_composite && n_values >= 2 ? n_values - 2 : 0;
    size_t expected = is_composite ? n + 2 : 1;
    if (n_values != expected || n_values > PUSH_MAX_WORDS ||
        (size_t)(key->end - key->at) < n * sizeof(double)) {
        return -EINVAL;
    }
    if (n > 0) {
        memcpy(bounds, key->at, n * sizeof(double));
    }
    key->at += n * sizeof(double);
    *ret_n = n;
    return 0;
}

static void take_words(const struct push_entry *entry, struct push_series *series) {
    double ttl;
    memcpy(&ttl, &entry->words[0], sizeof(ttl));
    bool sane = ttl >= 0 && ttl < 1e15;
    series->ttl_ms = sane ? (int64_t)ttl : PUSH_TTL_DEFAULT;
    series->owner->n_with_ttl += series->ttl_ms > 0 ? 1 : 0;
    *series->ttl = (double)series->ttl_ms;
    memcpy(series->values, &entry->words[1], series->n_values * sizeof(double));
}

/* Makes a series, unless there is one with the same labels. */
static int keep_series(struct loader *loader, const struct push_series_spec *spec,
                       struct push_series **ret_series) {
    const struct push_update update = {
        .name = push_family_name(spec->family),
        .labels = spec->labels,
        .n_labels = (uint32_t)spec->n_labels,
    };
    struct push_store *store = loader->store;
    if (push_check_labels(spec->owner, spec->family->type, &update, NULL) < 0 ||
        push_check_bounds(&update, spec->bounds, spec->n_bounds, NULL) < 0 ||
        push_series_find(store, spec->family, spec->owner, &update, spec->labels_hash) != NULL) {
        return -EINVAL;
    }
    int r = push_series_create(store, spec, ret_series, NULL);
    if (r == 0) {
        (*ret_series)->updated_ms = loader->now_ms;
    }
    return r;
}

static int load_series(struct loader *loader, const struct push_entry *entry, uint32_t id) {
    struct push_store *store = loader->store;
    struct key key = key_of(entry);
    double bounds[PUSH_MAX_WORDS];
    struct label labels[LOAD_MAX_LABELS];
    struct push_series_spec spec = {
        .family = find(&loader->families, entry->detail),
        .owner = find(&loader->owners, entry->owner),
        .labels = labels,
        .bounds = bounds,
    };
    if (spec.owner == NULL || spec.family == NULL || entry->n_words < 2 ||
        take_bounds(&key, spec.family, entry->n_words - 1u, bounds, &spec.n_bounds) < 0 ||
        take_labels(&key, labels, &spec.n_labels) < 0) {
        return -EINVAL;
    }
    spec.labels_hash = spec.owner->hash + push_hash_labels(store, labels, spec.n_labels);
    struct push_series *series = NULL;
    int r = keep_series(loader, &spec, &series);
    if (r == 0) {
        take_words(entry, series);
        push_table_commit(store->table, series->entry);
        loader->report->n_series++;
        hash_index_add(&loader->series, id, series);
    }
    return r;
}

/* The family of gauges that belongs to a family of counters; NULL: none. */
static struct push_family *find_gauges(const struct push_store *store,
                                       const struct push_family *counters) {
    char name[PUSH_MAX_NAME + 16];
    const char *total = push_family_name(counters);
    sprintf(name, "%.*s", (int)push_base_len(total), total);
    struct push_family *gauges = push_family_find(store, name);
    bool is_pair = counters->type == PUSH_COUNTER && ends_in_total(total) && gauges != NULL &&
                   gauges->type == PUSH_GAUGE;
    return is_pair ? gauges : NULL;
}

static int load_mean(struct loader *loader, const struct push_entry *entry, uint32_t id) {
    (void)id;
    struct push_series *counter = find(&loader->series, entry->detail), *gauge = NULL;
    if (counter == NULL || counter->mean != NULL || counter->owner->group) {
        return -EINVAL;
    }
    const struct push_series_spec spec = {
        .family = find_gauges(loader->store, counter->family),
        .owner = counter->owner,
        .mean_of = counter,
        .labels = counter->own,
        .n_labels = counter->n_labels,
        .labels_hash = counter->labels_hash,
    };
    int r = spec.family != NULL ? keep_series(loader, &spec, &gauge) : -EINVAL;
    if (r == 0) {
        push_table_commit(loader->store->table, gauge->entry);
        loader->report->n_series++;
    }
    return r;
}

/* Puts the first total behind those of higher rank. Words are not covered by the entry's check. */
static void sort_first(struct push_series *series, double rank) {
    struct push_total *total = series->totals, **link = &total->next;
    *total->rank = rank >= 0 && rank < 0x1p52 ? rank : 0;
    while (*link != NULL && *(*link)->rank > *total->rank) {
        link = &(*link)->next;
    }
    if (link != &total->next) {
        series->totals = total->next;
        total->next = *link;
        *link = total;
    }
}

static int load_total(struct loader *loader, const struct push_entry *entry, uint32_t id) {
    (void)id;
    struct push_series *series = find(&loader->series, entry->detail);
    uint64_t start;
    if (series == NULL || entry->n_words < series->n_values || entry->key_len != sizeof(start)) {
        return -EINVAL;
    }
    memcpy(&start, key_of(entry).at, sizeof(start));
    for (const struct push_total *other = series->totals; other != NULL; other = other->next) {
        if (other->start == start) {
            return -EEXIST;
        }
    }
    struct push_total *total = NULL;
    int r = push_total_create(loader->store, series, start, &total, NULL);
    if (r == 0) {
        double rank = 0; /* earlier versions have none */
        memcpy(total->last, entry->words, series->n_values * sizeof(double));
        if (entry->n_words > series->n_values) {
            memcpy(&rank, &entry->words[series->n_values], sizeof(rank));
        }
        sort_first(series, rank);
        push_table_commit(loader->store->table, total->entry);
    }
    return r;
}

static int load_note(struct loader *loader, const struct push_entry *entry, uint32_t id) {
    (void)id;
    struct push_owner *owner = find(&loader->owners, entry->owner);
    struct key key = key_of(entry);
    const char *name, *text;
    if (owner == NULL || take_text(&key, &name) < 0 || take_text(&key, &text) < 0) {
        return -EINVAL;
    }
    return push_store_put_note(loader->store, owner, name, text, NULL);
}

static const struct kind {
    int pass;
    int (*load)(struct loader *loader, const struct push_entry *entry, uint32_t id);
} kinds[] = {
    [PUSH_ENTRY_OWNER] = {0, load_owner},
    [PUSH_ENTRY_FAMILY] = {0, load_family},
    [PUSH_ENTRY_HELP] = {1, load_help},
    [PUSH_ENTRY_SERIES] = {1, load_series},
    [PUSH_ENTRY_TOTAL] = {N_PASSES - 1, load_total},
    [PUSH_ENTRY_MEAN] = {N_PASSES - 1, load_mean},
    [PUSH_ENTRY_NOTE] = {1, load_note},
};

static void load(const struct push_entry *entry, uint32_t id, void *context) {
    struct loader *loader = context;
    const struct kind *kind = entry->type < ARRAY_LEN(kinds) && kinds[entry->type].load != NULL
                                  ? &kinds[entry->type]
                                  : NULL;
    if (loader->pass != (kind != NULL ? kind->pass : 0)) {
        return;
    }
    /* In a copy that was made during pushes, another entry may have taken the place. */
    bool is_linked = entry->link == push_entry_link(entry, loader->pages, loader->len);
    if (kind == NULL || !is_linked || kind->load(loader, entry, id) < 0) {
        loader->report->n_dropped++;
    }
}

/* ---- all ---- */

/* After a crash, families and owners may have no series. */
static void drop_empty(struct push_store *store) {
    for (struct push_link *i = store->families.next, *next; i != &store->families; i = next) {
        next = i->next;
        struct push_family *family = CONTAINER_OF(i, struct push_family, link);
        if (family->n_series == 0) {
            push_family_destroy(store, family);
        }
    }
    for (struct push_link *i = store->owners.next, *next; i != &store->owners; i = next) {
        next = i->next;
        push_owner_drop_if_idle(store, CONTAINER_OF(i, struct push_owner, link));
    }
}

void push_store_load(struct push_store *store, const void *pages, size_t len,
                     struct push_load_report *ret_report) {
    *ret_report = (struct push_load_report){0};
    struct loader loader = {
        .store = store,
        .report = ret_report,
        .now_ms = push_store_now_ms(store),
        .pages = pages,
        .len = len,
    };
    for (; loader.pass < N_PASSES; loader.pass++) {
        ret_report->n_damaged_pages = push_pages_scan(pages, len, load, &loader);
    }
    drop_empty(store);
    hash_index_finish(&loader.owners);
    hash_index_finish(&loader.families);
    hash_index_finish(&loader.series);
}
