#include "placement/place/index.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/hash.h"

/* By what a series can be found. */
enum kind { BY_NODE, BY_INSTANCE, N_KINDS };

struct place_index_entry {
    enum kind kind;
    const char *key;
    size_t len;
    const struct promql_series *series;
    bool twice;
};

void place_index_finish(struct place_index *index) {
    hash_index_finish(&index->hashes);
    free(index->entries);
}

static struct place_index_entry *find(const struct place_index *index, enum kind kind,
                                      const char *key, size_t len) {
    uint64_t hash = hash_bytes(key, len) + (uint64_t)kind;
    size_t cursor = 0;
    struct place_index_entry *entry;
    if (index->hashes.n_items == 0) {
        return NULL;
    }
    while ((entry = hash_index_next(&index->hashes, hash, &cursor)) != NULL) {
        if (entry->kind == kind && entry->len == len && memcmp(entry->key, key, len) == 0) {
            break;
        }
    }
    return entry;
}

static void add(struct place_index *index, enum kind kind, const struct promql_series *series) {
    const char *key = promql_series_label(series, kind == BY_NODE ? "node" : "instance");
    if (key == NULL) {
        return;
    }
    size_t len = strlen(key);
    struct place_index_entry *there = find(index, kind, key, len);
    if (there != NULL) {
        there->twice = true;
        return;
    }
    struct place_index_entry *entry = &index->entries[index->n_entries++];
    *entry = (struct place_index_entry){.kind = kind, .key = key, .len = len, .series = series};
    hash_index_add(&index->hashes, hash_bytes(key, len) + (uint64_t)kind, entry);
}

static bool is_match(const struct promql_series *series, const struct label *match,
                     size_t n_match) {
    for (size_t i = 0; i < n_match; i++) {
        const char *value = promql_series_label(series, match[i].name);
        if (value == NULL || strcmp(value, match[i].value) != 0) {
            return false;
        }
    }
    return true;
}

int place_index_fill(struct place_index *index, const struct promql_answer *answer,
                     const struct label *match, size_t n_match, struct error *err) {
    size_t max = N_KINDS * answer->n_series;
    index->entries = calloc(max + 1, sizeof(*index->entries));
    if (index->entries == NULL || !hash_index_reserve(&index->hashes, max)) {
        error_set(err, -ENOMEM, "out of memory");
        return -ENOMEM;
    }
    for (size_t i = 0; i < answer->n_series; i++) {
        if (is_match(&answer->series[i], match, n_match)) {
            add(index, BY_NODE, &answer->series[i]);
            add(index, BY_INSTANCE, &answer->series[i]);
        }
    }
    return 0;
}

/* The ways from the series that names a node to those with its state, the surest first. All of them
 * lead to this node or nowhere: hosts are not compared, as several nodes can be behind one, and
 * while the sample of one is missing that of another would be the only one there. */
static const struct {
    const char *label;
    enum kind kind;
} ways[] = {
    {"node", BY_NODE},
    {"char_node_name", BY_INSTANCE},
    {"char_node_name", BY_NODE},
    {"instance", BY_INSTANCE},
};

static const struct place_index_entry *find_entry(const struct place_index *index,
                                                  const struct promql_series *device) {
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        const char *key = promql_series_label(device, ways[i].label);
        const struct place_index_entry *entry =
            key != NULL ? find(index, ways[i].kind, key, strlen(key)) : NULL;
        if (entry != NULL) {
            return entry;
        }
    }
    return NULL;
}

double place_index_value(const struct place_index *index, const struct promql_series *device,
                         bool *ret_twice) {
    const struct place_index_entry *entry = find_entry(index, device);
    *ret_twice = entry != NULL && entry->twice;
    return entry == NULL || entry->twice || entry->series->n_points == 0
               ? NAN
               : entry->series->points[0].value;
}
