#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/container_of.h"
#include "exporter/core/hash.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/push/private.h"

/* Families, series and totals, with their entries in the table. */

/* ---- labels ---- */

size_t push_labels_size(const struct label *labels, size_t n) {
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        size += strlen(labels[i].name) + strlen(labels[i].value) + 2;
    }
    return size;
}

static char *copy_text(char *to, const char *text, const char **ret_copy) {
    *ret_copy = to;
    return stpcpy(to, text) + 1;
}

void push_copy_labels(struct label *to, char *text, const struct label *labels, size_t n) {
    for (size_t i = 0; i < n; i++) {
        text = copy_text(text, labels[i].name, &to[i].name);
        text = copy_text(text, labels[i].value, &to[i].value);
    }
}

bool push_labels_equal(const struct label *a, const struct label *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(a[i].value, b[i].value) != 0 || strcmp(a[i].name, b[i].name) != 0) {
            return false;
        }
    }
    return true;
}

/* Adds a label to a sorted list. */
static size_t insert(struct label *labels, size_t n, struct label label) {
    size_t i = n;
    for (; i > 0 && strcmp(labels[i - 1].name, label.name) > 0; i--) {
        labels[i] = labels[i - 1];
    }
    labels[i] = label;
    return n + 1;
}

/* All labels of a series, sorted by name. Those of a group get an empty instance if they have none:
 * Prometheus would add that of the exporter, which is wrong. */
static struct label *gather(const struct push_owner *owner, const struct label *own, size_t n_own,
                            size_t *ret_n) {
    struct label *all = mem_zalloc(owner->n_labels + n_own + 2, sizeof(*all));
    size_t n = 0;
    for (size_t i = 0; i < owner->n_labels; i++) {
        all[n++] = owner->labels[i];
    }
    for (size_t i = 0; i < n_own; i++) {
        n = insert(all, n, own[i]);
    }
    if (owner->group && label_find(all, n, "instance") == NULL) {
        n = insert(all, n, (struct label){"instance", label_empty});
    }
    *ret_n = n;
    return all;
}

struct labels *push_labels_render(const struct push_owner *owner, const struct label *own,
                                  size_t n_own) {
    size_t n = 0;
    struct label *all CLEANUP_FREE = gather(owner, own, n_own, &n);
    return labels_create(all, n);
}

static size_t add_edge(struct buf *text, struct label *all, size_t n, const char *name,
                       double bound) {
    char value[NUMBER_MAX_LEN + 1];
    value[number_format_canonical(bound, value)] = '\0';
    all[n] = (struct label){name, value};
    return labels_append(text, all, n + 1);
}

static struct push_buckets *create_buckets(const struct push_series *series) {
    bool histogram = series->family->type == PUSH_HISTOGRAM;
    size_t n_sets = series->n_bounds + (histogram ? 1 : 0);
    size_t n = 0;
    struct label *all CLEANUP_FREE = gather(series->owner, series->own, series->n_labels, &n);
    struct push_buckets *buckets =
        mem_zalloc(1, sizeof(*buckets) + n_sets * sizeof(buckets->labels[0]));
    size_t offsets[PUSH_MAX_WORDS];
    buckets->n = n_sets;
    for (size_t i = 0; i < n_sets; i++) {
        double bound = i < series->n_bounds ? series->bounds[i] : HUGE_VAL;
        offsets[i] = add_edge(&buckets->text, all, n, histogram ? "le" : "quantile", bound);
    }
    for (size_t i = 0; i < n_sets; i++) {
        buckets->labels[i] = (const struct labels *)(buckets->text.data + offsets[i]);
    }
    return buckets;
}

/* ---- families ---- */

static const enum metric_type exported_types[] = {
    [PUSH_UNTYPED] = METRIC_UNTYPED, [PUSH_COUNTER] = METRIC_COUNTER,
    [PUSH_GAUGE] = METRIC_GAUGE,     [PUSH_HISTOGRAM] = METRIC_HISTOGRAM,
    [PUSH_SUMMARY] = METRIC_SUMMARY,
};

static struct push_desc *describe(const char *name, const char *help, enum push_type type) {
    size_t name_size = strlen(name) + 1;
    struct push_desc *desc = mem_alloc(sizeof(*desc) + name_size + strlen(help) + 1);
    desc->desc = (struct metric_desc){
        .name = strcpy(desc->text, name),
        .help = strcpy(desc->text + name_size, help),
        .type = exported_types[type],
    };
    return desc;
}

static struct push_entry_spec spec_of_family(const struct push_family *family) {
    const char *name = push_family_name(family);
    return (struct push_entry_spec){
        .type = PUSH_ENTRY_FAMILY,
        .flags = (uint8_t)((family->has_short_name ? PUSH_FAMILY_SHORT_NAME : 0) |
                           (family->of_group ? PUSH_FAMILY_OF_GROUP : 0)),
        .detail = family->type,
        .key = {{name, strlen(name) + 1}},
    };
}

static struct push_entry_spec spec_of_help(const struct push_family *family) {
    const char *help = family->desc->desc.help;
    return (struct push_entry_spec){.type = PUSH_ENTRY_HELP, .key = {{help, strlen(help) + 1}}};
}

static int add_help_entry(struct push_store *store, struct push_family *family, struct error *err) {
    struct push_entry_spec spec = spec_of_help(family);
    spec.detail = push_table_id(store->table, family->entry);
    return push_table_add(store->table, &spec, &family->help, err);
}

static size_t entry_cost(const struct push_entry *entry) {
    return entry != NULL ? push_table_cost(entry->size) : 0;
}

static void charge_family(struct push_store *store, struct push_family *family, ptrdiff_t n) {
    store->cost += (size_t)n;
    family->cost += (size_t)n;
    if (family->payer != NULL) {
        family->payer->cost += (size_t)n;
    }
}

static void free_family(struct push_store *store, struct push_family *family) {
    push_table_remove(store->table, family->help);
    push_table_remove(store->table, family->entry);
    push_defer_free(store, family->desc, family->collected);
    free(family);
}

int push_family_create(struct push_store *store, const struct push_family_spec *spec,
                       struct push_family **ret_family, struct error *err) {
    const char *no_help = spec->of_group ? "" : "Pushed without a help text";
    struct push_family *family = mem_zalloc(1, sizeof(*family));
    family->type = spec->type;
    family->has_short_name = spec->has_short_name;
    family->of_group = spec->of_group;
    family->has_help = spec->help != NULL;
    family->hash = push_hash_text(store, spec->name);
    family->desc = describe(spec->name, spec->help != NULL ? spec->help : no_help, spec->type);
    struct push_entry_spec entry = spec_of_family(family);
    int r = push_table_add(store->table, &entry, &family->entry, err);
    r = r == 0 && family->has_help ? add_help_entry(store, family, err) : r;
    if (r < 0) {
        free_family(store, family);
        return r;
    }
    push_link_init(&family->series);
    family->number = ++store->number;
    hash_index_add(&store->names, family->hash, family);
    push_link_append(&store->families, &family->link);
    charge_family(store, family, (ptrdiff_t)(entry_cost(family->entry) + entry_cost(family->help)));
    *ret_family = family;
    return 0;
}

void push_family_commit(struct push_store *store, const struct push_family *family) {
    push_table_commit(store->table, family->entry);
    if (family->help != NULL) {
        push_table_commit(store->table, family->help);
    }
}

/* Snapshots refer to a description while they are rendered: it is replaced, never changed. */
void push_family_take_help(struct push_store *store, struct push_family *family, const char *help) {
    struct push_share *payer = family->payer;
    size_t cost = push_table_cost(sizeof(struct push_entry) + strlen(help) + 1);
    /* The update was accepted without it: if there is no room, the family stays without help. */
    if (push_check_room(store, (ptrdiff_t)cost, 0, "", NULL) < 0 ||
        (payer != NULL && payer->cost + cost > push_store_limits(store)->max_peer_bytes)) {
        return;
    }
    struct push_desc *before = family->desc;
    family->desc = describe(push_family_name(family), help, family->type);
    push_defer_free(store, before, family->collected);
    family->has_help = true;
    if (add_help_entry(store, family, NULL) == 0) {
        push_table_commit(store->table, family->help);
        charge_family(store, family, (ptrdiff_t)entry_cost(family->help));
    }
}

void push_family_destroy(struct push_store *store, struct push_family *family) {
    charge_family(store, family, -(ptrdiff_t)family->cost);
    push_share_unref(family->payer);
    hash_index_remove(&store->names, family->hash, family);
    push_walks_skip(store, &family->link);
    push_link_remove(&family->link);
    free_family(store, family);
}

struct push_family *push_family_find(const struct push_store *store, const char *name) {
    size_t cursor = 0;
    struct push_family *family;
    uint64_t hash = push_hash_text(store, name);
    while ((family = hash_index_next(&store->names, hash, &cursor)) != NULL) {
        if (family->dropped != store->batch && strcmp(push_family_name(family), name) == 0) {
            return family;
        }
    }
    return NULL;
}

/* ---- names of families ---- */

size_t push_base_len(const char *name) {
    size_t len = strlen(name), ending = strlen("_total");
    return len > ending && strcmp(name + len - ending, "_total") == 0 ? len - ending : len;
}

struct push_family *push_family_of_name(const struct push_store *store, const char *name) {
    static const char *const endings[] = {"_bucket", "_count", "_sum"};
    char other[PUSH_MAX_NAME + 32];
    struct push_family *family = push_family_find(store, name);
    if (family != NULL) {
        return family;
    }
    sprintf(other, "%s_total", name);
    family = push_family_find(store, other);
    if (family != NULL && family->has_short_name) {
        return family;
    }
    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        size_t len = strlen(name), ending = strlen(endings[i]);
        if (len > ending && strcmp(name + len - ending, endings[i]) == 0) {
            sprintf(other, "%.*s", (int)(len - ending), name);
            family = push_family_find(store, other);
            bool has_it = family != NULL && (family->type == PUSH_HISTOGRAM ||
                                             (family->type == PUSH_SUMMARY && i > 0));
            return has_it ? family : NULL;
        }
    }
    return NULL;
}

const char *push_family_next_name(const char *name, enum push_type of, bool has_short_name,
                                  size_t i, char out[static PUSH_MAX_NAME + 16]) {
    static const char *const endings[] = {"", "_count", "_sum", "_bucket"};
    size_t n = of == PUSH_HISTOGRAM ? 4 : of == PUSH_SUMMARY ? 3 : 1;
    if (i < n) {
        sprintf(out, "%s%s", name, endings[i]);
        return out;
    }
    sprintf(out, "%.*s", (int)push_base_len(name), name);
    return i == n && has_short_name ? out : NULL;
}

/* ---- finding series ---- */

static uint64_t hash_series(const struct push_store *store, const struct push_family *family,
                            uint64_t labels_hash) {
    return hash_mix(family->hash, labels_hash ^ store->seed);
}

static bool has_all(const struct push_series *series, const struct label *labels, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *value = label_find(series->own, series->n_labels, labels[i].name);
        if (value == NULL) {
            value = label_find(series->owner->labels, series->owner->n_labels, labels[i].name);
        }
        if (value == NULL || strcmp(value, labels[i].value) != 0) {
            return false;
        }
    }
    return true;
}

/* Whether the series has the labels of the update, in whatever way they are divided between metric
 * and owner. Rendered labels do not tell, as groups get an empty instance. */
static bool matches(const struct push_series *series, const struct push_owner *owner,
                    const struct push_update *update) {
    if (series->owner == owner) {
        return series->n_labels == update->n_labels &&
               push_labels_equal(series->own, update->labels, update->n_labels);
    }
    return series->owner->n_labels + series->n_labels == owner->n_labels + update->n_labels &&
           has_all(series, owner->labels, owner->n_labels) &&
           has_all(series, update->labels, update->n_labels);
}

struct push_series *push_series_find(const struct push_store *store,
                                     const struct push_family *family,
                                     const struct push_owner *owner,
                                     const struct push_update *update, uint64_t labels_hash) {
    uint64_t hash = hash_series(store, family, labels_hash);
    size_t cursor = 0;
    struct push_series *series;
    while ((series = hash_index_next(&store->series, hash, &cursor)) != NULL) {
        if (series->family == family && push_series_base(series)->dropped != store->batch &&
            matches(series, owner, update)) {
            return series;
        }
    }
    return NULL;
}

/* ---- making series ---- */

enum { SERIES_COST = 384 }; /* in memory, beside the entry and the text */

/* How many bytes its names and labels take on a page, and so in memory. */
static size_t text_size(const struct push_series *series) {
    const struct push_buckets *buckets = series->buckets;
    size_t n_buckets = buckets != NULL ? buckets->n : 0;
    size_t n_others = buckets != NULL ? 2 : 1;
    return (n_buckets + n_others) * strlen(push_family_name(series->family)) +
           n_others * series->labels->len + (buckets != NULL ? buckets->text.len : 0);
}

static int add_entry(struct push_store *store, struct push_series *series, struct error *err) {
    struct push_entry_spec spec = {
        .owner = push_table_id(store->table, series->owner->entry),
    };
    if (series->mean_of != NULL) {
        spec.type = PUSH_ENTRY_MEAN;
        spec.detail = push_table_id(store->table, series->mean_of->entry);
        return push_table_add(store->table, &spec, &series->entry, err);
    }
    spec.type = PUSH_ENTRY_SERIES;
    spec.detail = push_table_id(store->table, series->family->entry);
    spec.n_words = 1 + series->n_values;
    spec.key[0] = (struct push_text){series->bounds, series->n_bounds * sizeof(double)};
    spec.key[1] = (struct push_text){series->own + series->n_labels,
                                     push_labels_size(series->own, series->n_labels)};
    int r = push_table_add(store->table, &spec, &series->entry, err);
    if (r == 0) {
        series->ttl = push_entry_values(series->entry);
        series->values = series->ttl + 1;
        *series->ttl = PUSH_TTL_DEFAULT;
    }
    return r;
}

static void free_series(struct push_store *store, struct push_series *series) {
    push_table_remove(store->table, series->entry);
    if (series->buckets != NULL) {
        push_defer_free(store, series->buckets->text.data, series->collected);
        free(series->buckets);
    }
    push_defer_free(store, series->labels, series->collected);
    free(series->rate);
    free(series->bounds);
    free(series);
}

static struct push_series *allocate(const struct push_series_spec *spec) {
    size_t n = spec->n_labels;
    size_t size = n * sizeof(struct label) + push_labels_size(spec->labels, n);
    struct push_series *series = mem_zalloc(1, sizeof(*series) + size);
    bool is_composite = push_type_is_composite(spec->family->type);
    series->family = spec->family;
    series->owner = spec->owner;
    series->mean_of = spec->mean_of;
    series->labels_hash = spec->labels_hash;
    series->ttl_ms = PUSH_TTL_DEFAULT;
    series->n_labels = n;
    push_copy_labels(series->own, (char *)(series->own + n), spec->labels, n);
    series->labels = push_labels_render(spec->owner, series->own, n);
    series->n_bounds = spec->n_bounds;
    series->n_values = spec->mean_of != NULL ? 0 : is_composite ? spec->n_bounds + 2 : 1;
    if (spec->n_bounds > 0) {
        series->bounds = mem_dup(spec->bounds, spec->n_bounds * sizeof(*spec->bounds));
    }
    if (is_composite) {
        series->buckets = create_buckets(series);
    }
    return series;
}

static bool names_plugin(const struct push_series *series) {
    return label_find(series->own, series->n_labels, "plugin") != NULL;
}

static void charge(struct push_store *store, struct push_series *series, int sign) {
    ptrdiff_t cost = (ptrdiff_t)series->cost;
    series->owner->n_series += (size_t)sign;
    push_charge(store, series->owner, sign > 0 ? cost : -cost);
}

void push_series_charge(struct push_store *store, struct push_series *series, int sign) {
    series = push_series_base(series);
    charge(store, series, sign);
    if (series->mean != NULL) {
        charge(store, series->mean, sign);
    }
}

/* The peer of the first series pays for the family until it is removed. */
static void pay_family(struct push_family *family, struct push_share *share) {
    if (family->n_series == 1 && share != NULL) {
        family->payer = push_share_ref(share);
        share->cost += family->cost;
    }
}

static void link_series(struct push_store *store, struct push_series *series) {
    uint64_t hash = hash_series(store, series->family, series->labels_hash);
    hash_index_add(&store->series, hash, series);
    push_link_append(&series->family->series, &series->in_family);
    push_link_append(&series->owner->series, &series->of_owner);
    series->number = ++store->number;
    series->family->n_series++;
    series->owner->n_naming += names_plugin(series) ? 1 : 0;
    store->stats.n_series++;
    charge(store, series, 1);
    pay_family(series->family, series->owner->share);
}

int push_series_create(struct push_store *store, const struct push_series_spec *spec,
                       struct push_series **ret_series, struct error *err) {
    struct push_series *series = allocate(spec);
    int r = add_entry(store, series, err);
    if (r < 0) {
        free_series(store, series);
        return r;
    }
    series->cost = SERIES_COST + push_table_cost(series->entry->size) + text_size(series);
    link_series(store, series);
    if (spec->mean_of != NULL) {
        spec->mean_of->mean = series;
        spec->mean_of->rate = mem_zalloc(1, sizeof(*series->rate));
    }
    *ret_series = series;
    return 0;
}

void push_series_destroy_one(struct push_store *store, struct push_series *series) {
    struct push_owner *owner = series->owner;
    struct push_family *family = series->family;
    while (series->totals != NULL) {
        push_total_destroy(store, series, &series->totals);
    }
    if (series->mean_of != NULL) {
        series->mean_of->mean = NULL;
        free(TAKE(series->mean_of->rate));
    }
    hash_index_remove(&store->series, hash_series(store, family, series->labels_hash), series);
    push_walks_skip(store, &series->in_family);
    push_walks_skip(store, &series->of_owner);
    push_link_remove(&series->in_family);
    push_link_remove(&series->of_owner);
    family->n_series--;
    owner->n_naming -= names_plugin(series) ? 1 : 0;
    owner->n_with_ttl -= series->ttl_ms > 0 ? 1 : 0;
    store->stats.n_series--;
    store->stats.changes++;
    charge(store, series, -1);
    free_series(store, series); /* its entry before that of its family */
    if (family->n_series == 0) {
        push_family_destroy(store, family);
    }
}

void push_series_destroy(struct push_store *store, struct push_series *series) {
    series = push_series_base(series);
    if (series->mean != NULL) {
        push_series_destroy_one(store, series->mean);
    }
    push_series_destroy_one(store, series);
}

/* ---- totals ---- */

enum { MAX_STARTS = 64 };

uint64_t push_start_number(const char *start) {
    /* The seed is constant: numbers are kept over restarts of the daemon. */
    uint64_t number = hash_seeded(UINT64_C(0x5741415053544152), start, strlen(start));
    return number != 0 ? number : 1;
}

static struct push_start *find_start(const struct push_store *store, uint64_t number) {
    size_t cursor = 0;
    return hash_index_next(&store->starts, number, &cursor);
}

void push_store_start_enter(struct push_store *store, uint64_t number) {
    struct push_start *start = find_start(store, number);
    if (start == NULL) {
        start = mem_zalloc(1, sizeof(*start));
        start->number = number;
        hash_index_add(&store->starts, number, start);
    }
    start->n_sessions++;
}

void push_store_start_leave(struct push_store *store, uint64_t number) {
    struct push_start *start = find_start(store, number);
    if (start != NULL && --start->n_sessions == 0) {
        hash_index_remove(&store->starts, number, start);
        free(start);
    }
}

bool push_start_is_connected(const struct push_store *store, uint64_t number) {
    return find_start(store, number) != NULL;
}

double push_total_rank(const struct push_series *series) {
    return series->totals != NULL ? *series->totals->rank + 1 : 1;
}

int push_total_create(struct push_store *store, struct push_series *series, uint64_t start,
                      struct push_total **ret_total, struct error *err) {
    struct push_total *total = mem_zalloc(1, sizeof(*total));
    total->start = start;
    const struct push_entry_spec spec = {
        .type = PUSH_ENTRY_TOTAL,
        .owner = push_table_id(store->table, series->owner->entry),
        .detail = push_table_id(store->table, series->entry),
        .n_words = series->n_values + 1,
        .key = {{&total->start, sizeof(total->start)}},
    };
    int r = push_table_add(store->table, &spec, &total->entry, err);
    if (r < 0) {
        free(total);
        return r;
    }
    total->last = push_entry_values(total->entry);
    total->rank = total->last + series->n_values;
    *total->rank = push_total_rank(series);
    total->next = series->totals;
    series->totals = total;
    push_charge(store, series->owner, (ptrdiff_t)entry_cost(total->entry));
    *ret_total = total;
    return 0;
}

void push_total_destroy(struct push_store *store, struct push_series *series,
                        struct push_total **link) {
    struct push_total *total = *link;
    *link = total->next;
    push_charge(store, series->owner, -(ptrdiff_t)entry_cost(total->entry));
    push_table_remove(store->table, total->entry);
    free(total);
}

void push_total_forget_oldest(struct push_store *store, struct push_series *series) {
    struct push_total **oldest = NULL;
    size_t n = 0;
    for (struct push_total **link = &series->totals; *link != NULL; link = &(*link)->next, n++) {
        oldest = n > 0 && !push_start_is_connected(store, (*link)->start) ? link : oldest;
    }
    if (n > MAX_STARTS && oldest != NULL) {
        push_total_destroy(store, series, oldest);
    }
}
