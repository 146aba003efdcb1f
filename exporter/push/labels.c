#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/hash.h"
#include "exporter/core/number.h"
#include "exporter/push/store_private.h"

/* ---- hashes ---- */

uint64_t push_hash_text(const struct push_store *store, const char *text) {
    return hash_seeded(store->seed, text, strlen(text));
}

uint64_t push_hash_labels(const struct push_store *store, const struct label *labels, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t name = hash_seeded(store->seed, labels[i].name, strlen(labels[i].name));
        sum += hash_seeded(name, labels[i].value, strlen(labels[i].value));
    }
    return sum;
}

/* ---- copies ---- */

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

/* ---- rendered ---- */

/* Adds a label to a sorted list. */
static size_t insert(struct label *labels, size_t n, struct label label) {
    size_t i = n;
    for (; i > 0 && strcmp(labels[i - 1].name, label.name) > 0; i--) {
        labels[i] = labels[i - 1];
    }
    labels[i] = label;
    return n + 1;
}

/* All labels of a series, sorted by name, so that equal sets of two owners look alike. Those of a
 * group say an instance, if only an empty one: that of the exporter would be wrong. */
static struct label *gather(const struct push_owner *owner, const struct label *own, size_t n_own,
                            size_t *ret_n) {
    struct label *all = calloc(owner->n_labels + n_own + 2, sizeof(*all));
    if (all == NULL) {
        return NULL;
    }
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
    return all != NULL ? labels_create(all, n) : NULL;
}

size_t push_text_size(const struct push_series *series) {
    const struct push_buckets *buckets = series->buckets;
    size_t n_buckets = buckets != NULL ? buckets->n : 0;
    size_t n_others = buckets != NULL || series->rate != NULL ? 2 : 1;
    return (n_buckets + n_others) * strlen(series->family->desc->main.name) +
           n_others * series->labels->len + (buckets != NULL ? buckets->text.len : 0);
}

/* ---- buckets ---- */

static size_t add_edge(struct buf *text, struct label *all, size_t n, const char *name,
                       double bound) {
    char value[NUMBER_MAX_LEN + 1];
    value[number_format_canonical(bound, value)] = '\0';
    all[n] = (struct label){name, value};
    return labels_append(text, all, n + 1);
}

struct push_buckets *push_buckets_create(const struct push_series *series) {
    bool histogram = series->family->type == PUSH_HISTOGRAM;
    size_t n_sets = series->n_bounds + (histogram ? 1 : 0);
    size_t n = 0;
    struct label *all CLEANUP_FREE = gather(series->owner, series->own, series->n_labels, &n);
    struct push_buckets *buckets =
        calloc(1, sizeof(*buckets) + n_sets * sizeof(buckets->labels[0]));
    size_t offsets[PUSH_MAX_WORDS];
    if (all == NULL || buckets == NULL) {
        free(buckets);
        return NULL;
    }
    buckets->n = n_sets;
    for (size_t i = 0; i < n_sets; i++) {
        double bound = i < series->n_bounds ? series->bounds[i] : HUGE_VAL;
        offsets[i] = add_edge(&buckets->text, all, n, histogram ? "le" : "quantile", bound);
    }
    if (buckets->text.failed) {
        buf_finish(&buckets->text);
        free(buckets);
        return NULL;
    }
    for (size_t i = 0; i < n_sets; i++) {
        buckets->labels[i] = (const struct labels *)(buckets->text.data + offsets[i]);
    }
    return buckets;
}
