#include "exporter/metrics/series_set.h"

#include <stdlib.h>
#include <string.h>

bool series_set_prepare(struct series_set *set, size_t n) {
    size_t n_slots = 16;
    while (n_slots < 2 * n) {
        n_slots *= 2;
    }
    if (n_slots > set->cap) {
        free(set->slots);
        set->slots = malloc(n_slots * sizeof(*set->slots));
        set->cap = set->slots != NULL ? n_slots : 0;
    }
    if (set->slots == NULL) {
        return false;
    }
    set->mask = n_slots - 1;
    memset(set->slots, 0, n_slots * sizeof(*set->slots));
    return true;
}

/* No labels and an empty set of them are the same series, so they hash alike. */
static uint32_t hash(const struct sample *sample) {
    const struct labels *labels = sample->labels;
    uint32_t result = labels != NULL && labels->len > 0 ? labels->hash : 0;
    for (const char *c = sample->suffix; *c != '\0'; c++) {
        result = (result ^ (unsigned char)*c) * UINT32_C(0x01000193);
    }
    return result;
}

static bool is_same(const struct sample *a, const struct sample *b) {
    return strcmp(a->suffix, b->suffix) == 0 && labels_equal(a->labels, b->labels);
}

bool series_set_add(struct series_set *set, const struct sample *sample) {
    for (size_t i = hash(sample) & set->mask;; i = (i + 1) & set->mask) {
        if (set->slots[i] == NULL) {
            set->slots[i] = sample;
            return true;
        }
        if (is_same(set->slots[i], sample)) {
            return false;
        }
    }
}

void series_set_finish(struct series_set *set) {
    free(set->slots);
    *set = (struct series_set){0};
}
