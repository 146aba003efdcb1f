#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/container_of.h"
#include "exporter/core/memory.h"
#include "exporter/push/private.h"

/* From entries back to owners, families, series. Entries come from files: nothing in them is
 * believed. */

enum { LOAD_MAX_LABELS = 128, N_PASSES = 3 };

struct loader {
    struct push_store *store;
    struct push_load_report *report;
    struct hash_index owners, families, series; /* by the numbers they had */
    int64_t now_ms;
    const void *pages;
    size_t len;
    int pass; /* of several: what others refer to comes first */
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
    size_t len = strlen(name), ending = strlen("_total");
    return len > ending && strcmp(name + len - ending, "_total") == 0;
}

/* As pushed: a counter's has got an ending. */
static bool is_good_name(const char *name) {
    char pushed[PUSH_MAX_NAME + sizeof("_total")];
    size_t len = strlen(name);
    if (len >= sizeof(pushed)) {
        return false;
    }
    memcpy(pushed, name, len + 1);
    if (len > PUSH_MAX_NAME && ends_in_total(name)) {
        pushed[len - strlen("_total")] = '\0';
    }
    return push_check_name(&(struct push_update){.name = pushed}, NULL) == 0;
}

static int load_family(struct loader *loader, const struct push_entry *entry, uint32_t id) {
    struct push_store *store = loader->store;
    struct key key = key_of(entry);
    struct push_update update = {0};
    if (take_text(&key, &update.name) < 0 || entry->detail <= PUSH_UNSAID ||
        entry->detail >= PUSH_RATE || !is_good_name(update.name)) {
        return -EINVAL;
    }
    bool has_short_name = (entry->flags & PUSH_FAMILY_SHORT_NAME) != 0;
    if ((has_short_name && !ends_in_total(update.name)) ||
        !push_name_is_free(store, update.name, entry->detail, has_short_name)) {
        return -EEXIST;
    }
    struct push_family *family = push_family_create(store, update.name, entry->detail, NULL,
                                                    (entry->flags & PUSH_FAMILY_OF_GROUP) != 0);
    family->has_short_name = has_short_name;
    int r = push_family_place(store, family, NULL);
    if (r < 0) {
        push_family_free(store, family);
        return r;
    }
    hash_index_add(&store->names, family->hash, family);
    push_family_link(store, family);
    hash_index_add(&loader->families, id, family);
    return 0;
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

static bool is_composite(const struct push_family *family) {
    return family->type == PUSH_HISTOGRAM || family->type == PUSH_SUMMARY;
}

/* The bounds stand first in the key, not aligned. */
static int take_bounds(struct key *key, const struct push_family *family, size_t n_values,
                       double bounds[static PUSH_MAX_WORDS], size_t *ret_n) {
    size_t n = is_composite(family) && n_values >= 2 ? n_values - 2 : 0;
    size_t expected = is_composite(family) ? n + 2 : 1;
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

/* The family that has the mean of a rate whose counter is in this one; NULL: damaged. */
static struct push_family *find_gauge(const struct push_store *store,
                                      const struct push_family *counter) {
    char name[PUSH_MAX_NAME + 1];
    if (counter->type != PUSH_COUNTER || !ends_in_total(push_family_name(counter))) {
        return NULL;
    }
    size_t len = strlen(push_family_name(counter)) - strlen("_total");
    memcpy(name, push_family_name(counter), len);
    name[len] = '\0';
    struct push_family *gauge = push_family_find(store, name);
    return gauge != NULL && gauge->type == PUSH_GAUGE ? gauge : NULL;
}

static int keep_series(struct push_store *store, struct push_series *series) {
    if (push_series_twin(store, series->family, series) != NULL ||
        (series->gauge != NULL && push_series_twin(store, series->gauge, series) != NULL)) {
        return -EEXIST;
    }
    return push_series_place(store, series, NULL);
}

/* The first owner of a series pays for its family. */
static void charge_family(struct push_family *family, const struct push_owner *owner) {
    if (family->payer == NULL && owner->share != NULL) {
        family->payer = push_share_ref(owner->share);
        family->payer->cost += family->cost;
    }
}

static int load_series(struct loader *loader, const struct push_entry *entry, uint32_t id) {
    struct push_store *store = loader->store;
    struct push_owner *owner = find(&loader->owners, entry->owner);
    struct push_family *family = find(&loader->families, entry->detail), *gauge = NULL;
    struct key key = key_of(entry);
    double bounds[PUSH_MAX_WORDS];
    struct label labels[LOAD_MAX_LABELS];
    size_t n_bounds = 0, n_labels = 0;
    if (owner == NULL || family == NULL || entry->n_words < 2 ||
        take_bounds(&key, family, entry->n_words - 1u, bounds, &n_bounds) < 0 ||
        take_labels(&key, labels, &n_labels) < 0) {
        return -EINVAL;
    }
    bool is_rate = (entry->flags & PUSH_SERIES_RATE) != 0;
    gauge = is_rate ? find_gauge(store, family) : NULL;
    struct push_update update = {
        .name = push_family_name(family), .labels = labels, .n_labels = (uint32_t)n_labels};
    if ((is_rate && (gauge == NULL || owner->group)) ||
        push_check_labels(owner, family->type, &update, NULL) < 0 ||
        push_check_bounds(&update, bounds, n_bounds, NULL) < 0) {
        return -EINVAL;
    }
    uint64_t hash = owner->hash + push_hash_labels(store, labels, n_labels);
    struct push_series *series =
        push_series_create(family, gauge, owner, &update, bounds, n_bounds, hash);
    int r = keep_series(store, series);
    if (r < 0) {
        push_series_free(store, series);
        return r;
    }
    take_words(entry, series);
    series->updated_ms = loader->now_ms;
    push_series_index(store, series);
    push_series_link(store, series);
    charge_family(family, owner);
    if (gauge != NULL) {
        charge_family(gauge, owner);
    }
    loader->report->n_series++;
    hash_index_add(&loader->series, id, series);
    return 0;
}

static int load_total(struct loader *loader, const struct push_entry *entry, uint32_t id) {
    (void)id;
    struct push_series *series = find(&loader->series, entry->detail);
    uint64_t start;
    if (series == NULL || entry->n_words != series->n_values + 1 ||
        entry->key_len != sizeof(start)) {
        return -EINVAL;
    }
    memcpy(&start, key_of(entry).at, sizeof(start));
    for (const struct push_total *other = series->totals; other != NULL; other = other->next) {
        if (other->start == start) {
            return -EEXIST;
        }
    }
    struct push_total *total = mem_zalloc(1, sizeof(*total));
    total->start = start;
    int r = push_total_place(loader->store, series, total, NULL);
    if (r < 0) {
        free(total);
        return r;
    }
    memcpy(total->last, entry->words, entry->n_words * sizeof(double));
    bool is_past = *total->used_ms >= 0 && *total->used_ms <= (double)loader->now_ms;
    *total->used_ms = is_past ? *total->used_ms : 0; /* the clock of another boot */
    push_total_link(loader->store, series, total);
    return 0;
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
    /* In a copy that was made while others pushed, a place may have changed hands. */
    bool is_linked = entry->link == push_entry_link(entry, loader->pages, loader->len);
    if (kind == NULL || !is_linked || kind->load(loader, entry, id) < 0) {
        loader->report->n_dropped++;
    }
}

/* ---- all ---- */

/* A crash may have come between a series and what it belongs to. */
static void drop_childless(struct push_store *store) {
    for (struct push_link *i = store->families.next, *next; i != &store->families; i = next) {
        next = i->next;
        struct push_family *family = CONTAINER_OF(i, struct push_family, link);
        if (family->n_members == 0) {
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
    drop_childless(store);
    hash_index_finish(&loader.owners);
    hash_index_finish(&loader.families);
    hash_index_finish(&loader.series);
}
