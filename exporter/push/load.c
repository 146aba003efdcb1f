#include <errno.h>
#include <string.h>

#include "exporter/core/container_of.h"
#include "exporter/push/claim.h"
#include "exporter/push/store_private.h"

/* From entries back to owners, families, series. Entries come from files: nothing in them is
 * believed. */

enum { LOAD_MAX_LABELS = 128 };

struct loader {
    struct push_store *store;
    struct push_load_report *report;
    struct hash_index owners, families, series; /* by the numbers they had */
    int64_t now_ms;
    bool first_pass; /* for what others name: a family that got its help later stands behind */
};

static void *find(const struct hash_index *index, uint32_t id) {
    size_t cursor = 0;
    return hash_index_next(index, id, &cursor);
}

static int note(struct hash_index *index, uint32_t id, void *item) {
    if (!hash_index_reserve(index, 1)) {
        return -ENOMEM;
    }
    hash_index_add(index, id, item);
    return 0;
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

/* Words are not covered by the entry's check, and moments have to become dates. */
static double take_time(uint64_t word) {
    double seconds;
    memcpy(&seconds, &word, sizeof(seconds));
    return seconds > 0 && seconds < 1e11 ? seconds : 0;
}

static int load_owner(struct loader *loader, const struct push_entry *entry) {
    struct key key = key_of(entry);
    struct label labels[LOAD_MAX_LABELS];
    size_t n = 0;
    if (entry->key_len == 0 || entry->n_words != 2) {
        return -EINVAL;
    }
    bool group = *key.at++ != 0;
    struct push_owner *owner = NULL;
    int r = take_labels(&key, labels, &n);
    if (r == 0) {
        r = push_owner_restore(loader->store, group, labels, n, &owner);
    }
    if (owner == NULL) {
        return r;
    }
    owner->push_seconds = take_time(entry->words[0]);
    owner->push_failure_seconds = take_time(entry->words[1]);
    push_persist_times(loader->store, owner);
    return note(&loader->owners, entry->id, owner);
}

static int load_family(struct loader *loader, const struct push_entry *entry) {
    struct key key = key_of(entry);
    const char *name, *help;
    struct push_family *family = NULL;
    if (take_text(&key, &name) < 0 || take_text(&key, &help) < 0 || entry->detail <= PUSH_UNSAID ||
        entry->detail > PUSH_RATE) {
        return -EINVAL;
    }
    struct push_update update = {
        .name = name,
        .type = entry->detail,
        .help = help[0] != '\0' ? help : NULL,
    };
    struct push_owner nobody = {.group = (entry->owner & PUSH_FAMILY_PLAIN) != 0, .name = "nobody"};
    push_link_init(&nobody.series);
    int r = push_family_for(loader->store, &nobody, &update, false, &family, NULL);
    if (r < 0) {
        return r;
    }
    if (update.help != NULL && !family->has_help) {
        push_family_take_help(loader->store, family, help);
    }
    return note(&loader->families, entry->id, family);
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

static int load_series(struct loader *loader, const struct push_entry *entry) {
    struct push_owner *owner = find(&loader->owners, entry->owner);
    struct push_family *family = find(&loader->families, entry->detail);
    struct key key = key_of(entry);
    double bounds[PUSH_MAX_WORDS];
    struct label labels[LOAD_MAX_LABELS];
    size_t n_bounds = 0, n_labels = 0;
    if (owner == NULL || family == NULL || entry->n_words < 2 ||
        (owner->group && family->type == PUSH_RATE) ||
        take_bounds(&key, family, entry->n_words - 1u, bounds, &n_bounds) < 0 ||
        take_labels(&key, labels, &n_labels) < 0) {
        return -EINVAL;
    }
    struct push_update update = {
        .name = family->desc->main.name,
        .labels = labels,
        .n_labels = (uint32_t)n_labels,
        .bounds = bounds,
        .n_bounds = (uint32_t)n_bounds,
    };
    uint64_t hash = 0;
    struct push_series *series = NULL;
    if (push_series_find(loader->store, family, owner, &update, &hash) != NULL) {
        return -EEXIST;
    }
    int r = push_series_create(loader->store, family, owner, &update, hash, &series, NULL);
    if (r < 0) {
        return r;
    }
    take_words(entry, series);
    series->updated_ms = loader->now_ms;
    loader->report->n_series++;
    return note(&loader->series, entry->id, series);
}

static int load_total(struct loader *loader, const struct push_entry *entry) {
    struct push_series *series = find(&loader->series, entry->detail);
    uint64_t start;
    struct push_total *total = NULL;
    if (series == NULL || entry->n_words != series->n_values || entry->key_len != sizeof(start)) {
        return -EINVAL;
    }
    memcpy(&start, key_of(entry).at, sizeof(start));
    int r = push_series_total(loader->store, series, start, &total, NULL);
    if (r == 0) {
        memcpy(total->last, entry->words, series->n_values * sizeof(double));
        push_series_count_total(loader->store, series, total, loader->now_ms);
    }
    return r;
}

static int load_note(struct loader *loader, const struct push_entry *entry) {
    struct push_owner *owner = find(&loader->owners, entry->owner);
    struct key key = key_of(entry);
    const char *name, *text;
    if (owner == NULL || take_text(&key, &name) < 0 || take_text(&key, &text) < 0) {
        return -EINVAL;
    }
    int r = push_store_put_note(loader->store, owner, name, text, NULL);
    return r < 0 ? r : push_claim_restore(loader->store, owner);
}

static int (*const loaders[])(struct loader *loader, const struct push_entry *entry) = {
    [PUSH_ENTRY_OWNER] = load_owner,   [PUSH_ENTRY_FAMILY] = load_family,
    [PUSH_ENTRY_SERIES] = load_series, [PUSH_ENTRY_TOTAL] = load_total,
    [PUSH_ENTRY_NOTE] = load_note,
};

static void load(const struct push_entry *entry, void *context) {
    struct loader *loader = context;
    bool named_by_others = entry->type == PUSH_ENTRY_OWNER || entry->type == PUSH_ENTRY_FAMILY;
    if (named_by_others != loader->first_pass) {
        return;
    }
    bool known = entry->type < ARRAY_LEN(loaders) && loaders[entry->type] != NULL;
    if (!known || loaders[entry->type](loader, entry) < 0) {
        loader->report->n_dropped++;
    }
}

/* ---- all ---- */

/* A crash may have come between a series and what it belongs to. */
static void drop_childless(struct push_store *store) {
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
    const struct push_limits limits = store->config.limits;
    /* What is there stays, even if less is allowed by now. */
    store->config.limits = (struct push_limits){
        .max_owners = SIZE_MAX,
        .max_groups = SIZE_MAX,
        .max_peer_owners = SIZE_MAX,
        .max_peer_series = SIZE_MAX,
        .max_series = SIZE_MAX,
        .max_owner_series = SIZE_MAX,
        .max_text = SIZE_MAX,
        .max_peer_text = SIZE_MAX,
        .max_labels = LOAD_MAX_LABELS,
        .max_name_len = PUSH_PAGE_SIZE,
        .max_value_len = PUSH_PAGE_SIZE,
        .max_help_len = PUSH_PAGE_SIZE,
        .max_buckets = PUSH_MAX_WORDS - 2,
    };
    *ret_report = (struct push_load_report){0};
    struct loader loader = {
        .store = store,
        .report = ret_report,
        .now_ms = push_store_now_ms(store),
        .first_pass = true,
    };
    push_pages_scan(pages, len, load, &loader);
    loader.first_pass = false;
    ret_report->n_damaged_pages = push_pages_scan(pages, len, load, &loader);
    drop_childless(store);
    push_table_commit(store->table);
    store->config.limits = limits;
    hash_index_finish(&loader.owners);
    hash_index_finish(&loader.families);
    hash_index_finish(&loader.series);
}
