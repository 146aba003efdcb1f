#include "exporter/metrics/exposition_doc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/hash.h"

enum { MIN_SLOTS = 64, MANY_SLOTS = 16384, MIN_ITEMS = 16 };

void exposition_doc_finish(struct exposition_doc *doc) {
    free(doc->families);
    free(doc->samples);
    free(doc->labels);
    free(doc->family_table.slots);
    free(doc->sample_table.slots);
    *doc = (struct exposition_doc){0};
}

void exposition_doc_reset(struct exposition_doc *doc) {
    doc->n_families = 0;
    doc->n_samples = 0;
    doc->n_labels = 0;
    doc->family_table.n_slots = 0;
    doc->sample_table.n_slots = 0;
}

/* Makes room for `more` items behind the `n` in `*array`. */
static bool grow(void **array, size_t item_size, size_t n, size_t more, size_t *cap) {
    if (n + more <= *cap) {
        return true;
    }
    size_t want = 2 * *cap > n + more ? 2 * *cap : n + more + MIN_ITEMS;
    void *grown = reallocarray(*array, want, item_size);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *cap = want;
    return true;
}

/* Of each family and sample at most, see table_next_size. */
enum { INDEX_BYTES = 4 * sizeof(uint64_t) };

size_t exposition_doc_size(const struct exposition_doc *doc) {
    return doc->n_families * (sizeof(*doc->families) + INDEX_BYTES) +
           doc->n_samples * (sizeof(*doc->samples) + INDEX_BYTES) +
           doc->n_labels * sizeof(*doc->labels);
}

bool exposition_doc_reserve(struct exposition_doc *doc, size_t text_len, size_t max_bytes) {
    enum { MIN_SAMPLE = sizeof("a 1\n") - 1, MIN_LABEL = sizeof("a=\"b\"") - 1 };
    size_t n_samples = text_len / MIN_SAMPLE, n_labels = text_len / MIN_LABEL;
    size_t max_samples = max_bytes / sizeof(*doc->samples);
    size_t max_labels = max_bytes / sizeof(*doc->labels);
    return grow((void **)&doc->samples, sizeof(*doc->samples), 0,
                n_samples < max_samples ? n_samples : max_samples, &doc->cap_samples) &&
           grow((void **)&doc->labels, sizeof(*doc->labels), 0,
                n_labels < max_labels ? n_labels : max_labels, &doc->cap_labels);
}

void exposition_doc_forget_index(struct exposition_doc *doc) {
    free(doc->family_table.slots);
    free(doc->sample_table.slots);
    doc->family_table = (struct exposition_table){0};
    doc->sample_table = (struct exposition_table){0};
}

/* Empties the table and gives it `n_slots` slots. */
static bool table_resize(struct exposition_table *table, size_t n_slots) {
    if (n_slots > table->cap) {
        free(table->slots);
        table->slots = malloc(n_slots * sizeof(*table->slots));
        table->cap = table->slots != NULL ? n_slots : 0;
    }
    table->n_slots = table->slots != NULL ? n_slots : 0;
    if (table->slots != NULL) {
        memset(table->slots, 0, n_slots * sizeof(*table->slots));
    }
    return table->slots != NULL;
}

/* The place of the next slot that is free or has that hash, from slot `i` on. */
static size_t table_seek(const struct exposition_table *table, uint64_t hash, size_t i) {
    for (;; i++) {
        i &= table->n_slots - 1;
        if (table->slots[i] == 0 || table->slots[i] >> 32 == hash >> 32) {
            return i;
        }
    }
}

static size_t slot_index(uint64_t slot) {
    return (size_t)(slot & UINT32_MAX) - 1;
}

/* Enters item number `index`, known to be absent. */
static void table_enter(struct exposition_table *table, uint64_t hash, size_t index) {
    size_t i = hash & (table->n_slots - 1);
    while (table->slots[i] != 0) {
        i = (i + 1) & (table->n_slots - 1);
    }
    table->slots[i] = (hash >> 32 << 32) | (uint64_t)(index + 1);
}

/* The size a table with `n_items` must get before one more is entered; 0: it is large enough. */
static size_t table_next_size(const struct exposition_table *table, size_t n_items) {
    if (table->n_slots == 0) {
        return MIN_SLOTS;
    }
    size_t times = table->n_slots < MANY_SLOTS ? 4 : 2;
    return 2 * (n_items + 1) > table->n_slots ? times * table->n_slots : 0;
}

static uint64_t family_hash(const struct exposition_doc *doc, const char *name, size_t len) {
    return hash_seeded(doc->seed, name, len);
}

struct exposition_family *exposition_doc_find(const struct exposition_doc *doc, const char *name,
                                              size_t len) {
    const struct exposition_table *table = &doc->family_table;
    if (table->n_slots == 0) {
        return NULL;
    }
    uint64_t hash = family_hash(doc, name, len);
    size_t i = table_seek(table, hash, hash);
    for (; table->slots[i] != 0; i = table_seek(table, hash, i + 1)) {
        struct exposition_family *family = &doc->families[slot_index(table->slots[i])];
        if (family->name_len == len && memcmp(family->desc.name, name, len) == 0) {
            return family;
        }
    }
    return NULL;
}

static bool prepare_family_table(struct exposition_doc *doc) {
    size_t n_slots = table_next_size(&doc->family_table, doc->n_families);
    if (n_slots == 0) {
        return true;
    }
    if (!table_resize(&doc->family_table, n_slots)) {
        return false;
    }
    for (size_t i = 0; i < doc->n_families; i++) {
        const struct exposition_family *family = &doc->families[i];
        table_enter(&doc->family_table, family_hash(doc, family->desc.name, family->name_len), i);
    }
    return true;
}

struct exposition_family *exposition_doc_add_family(struct exposition_doc *doc, const char *name,
                                                    size_t len) {
    doc->seed = doc->seed != 0 ? doc->seed : hash_seed();
    if (doc->n_families >= UINT32_MAX || !prepare_family_table(doc) ||
        !grow((void **)&doc->families, sizeof(*doc->families), doc->n_families, 1,
              &doc->cap_families)) {
        return NULL;
    }
    struct exposition_family *family = &doc->families[doc->n_families];
    *family = (struct exposition_family){.desc.name = name, .name_len = len};
    table_enter(&doc->family_table, family_hash(doc, name, len), doc->n_families++);
    return family;
}

static bool prepare_sample_table(struct exposition_doc *doc) {
    size_t n_slots = table_next_size(&doc->sample_table, doc->n_samples);
    if (n_slots == 0) {
        return true;
    }
    if (!table_resize(&doc->sample_table, n_slots)) {
        return false;
    }
    for (size_t i = 0; i < doc->n_samples; i++) {
        table_enter(&doc->sample_table, doc->samples[i].hash, i);
    }
    return true;
}

static uint64_t series_hash(const struct exposition_doc *doc,
                            const struct exposition_sample *sample,
                            const struct exposition_label *labels, size_t n_labels) {
    uint64_t hash = hash_seeded(doc->seed ^ sample->family, sample->suffix, strlen(sample->suffix));
    for (size_t i = 0; i < n_labels; i++) {
        if (labels[i].value_len > 0) {
            hash = hash_seeded(hash, labels[i].name, labels[i].name_len);
            hash = hash_seeded(hash, labels[i].value, labels[i].value_len);
        }
    }
    return hash;
}

const char *exposition_doc_label(const struct exposition_doc *doc,
                                 const struct exposition_sample *sample, const char *name) {
    const char *value = label_find(exposition_doc_labels(doc, sample), sample->n_labels, name);
    return value != NULL ? value : "";
}

static bool same_series(const struct exposition_doc *doc, const struct exposition_sample *a,
                        const struct exposition_sample *b) {
    if (a->hash != b->hash || a->family != b->family || a->n_labels != b->n_labels ||
        strcmp(a->suffix, b->suffix) != 0) {
        return false;
    }
    const struct label *left = exposition_doc_labels(doc, a);
    const struct label *right = exposition_doc_labels(doc, b);
    for (size_t i = 0; i < a->n_labels; i++) {
        if (strcmp(left[i].name, right[i].name) != 0 ||
            strcmp(left[i].value, right[i].value) != 0) {
            return false;
        }
    }
    return true;
}

static bool is_duplicate(const struct exposition_doc *doc, const struct exposition_sample *sample) {
    const struct exposition_table *table = &doc->sample_table;
    size_t i = table_seek(table, sample->hash, sample->hash);
    for (; table->slots[i] != 0; i = table_seek(table, sample->hash, i + 1)) {
        if (same_series(doc, &doc->samples[slot_index(table->slots[i])], sample)) {
            return true;
        }
    }
    return false;
}

/* An empty label means the same as none, so it is not kept. */
static uint32_t add_labels(struct exposition_doc *doc, const struct exposition_label *labels,
                           size_t n_labels) {
    uint32_t n = 0;
    struct label *to = doc->labels + doc->n_labels;
    for (size_t i = 0; i < n_labels; i++) {
        labels[i].name[labels[i].name_len] = '\0';
        labels[i].value[labels[i].value_len] = '\0';
        if (labels[i].value_len > 0) {
            to[n++] = (struct label){.name = labels[i].name, .value = labels[i].value};
        }
    }
    return n;
}

int exposition_doc_add_sample(struct exposition_doc *doc, const struct exposition_sample *sample,
                              const struct exposition_label *labels, size_t n_labels) {
    /* One label more than needed, so that there is an array even where nothing has labels. */
    if (doc->n_samples >= UINT32_MAX || !prepare_sample_table(doc) ||
        !grow((void **)&doc->samples, sizeof(*doc->samples), doc->n_samples, 1,
              &doc->cap_samples) ||
        !grow((void **)&doc->labels, sizeof(*doc->labels), doc->n_labels, n_labels + 1,
              &doc->cap_labels)) {
        return -ENOMEM;
    }
    /* The slot of a large table is in no cache: let it come while the sample is stored. */
    uint64_t hash = series_hash(doc, sample, labels, n_labels);
    __builtin_prefetch(&doc->sample_table.slots[hash & (doc->sample_table.n_slots - 1)], 1);
    struct exposition_sample *added = &doc->samples[doc->n_samples];
    *added = *sample;
    added->hash = hash;
    added->first_label = doc->n_labels;
    added->n_labels = add_labels(doc, labels, n_labels);
    if (is_duplicate(doc, added)) {
        return -EEXIST;
    }
    table_enter(&doc->sample_table, added->hash, doc->n_samples++);
    doc->n_labels += added->n_labels;
    doc->families[sample->family].n_samples++;
    return 0;
}
