#include "exporter/core/hash_index.h"

#include <stdlib.h>

enum { INDEX_MIN_SLOTS = 16 };

void hash_index_finish(struct hash_index *index) {
    free(index->slots);
    *index = (struct hash_index){0};
}

static void place(struct hash_index *index, uint64_t hash, void *item) {
    size_t mask = index->n_slots - 1;
    size_t i = (size_t)hash & mask;
    while (index->slots[i].item != NULL) {
        i = (i + 1) & mask;
    }
    index->slots[i] = (struct hash_index_slot){hash, item};
}

/* Half of the slots stay free, so that every walk is short. */
bool hash_index_reserve(struct hash_index *index, size_t n) {
    size_t n_slots = index->n_slots != 0 ? index->n_slots : INDEX_MIN_SLOTS;
    while (n_slots < 2 * (index->n_items + n)) {
        n_slots *= 2;
    }
    if (n_slots == index->n_slots) {
        return true;
    }
    struct hash_index grown = {.n_slots = n_slots, .n_items = index->n_items};
    grown.slots = calloc(n_slots, sizeof(*grown.slots));
    if (grown.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < index->n_slots; i++) {
        if (index->slots[i].item != NULL) {
            place(&grown, index->slots[i].hash, index->slots[i].item);
        }
    }
    free(index->slots);
    *index = grown;
    return true;
}

void hash_index_add(struct hash_index *index, uint64_t hash, void *item) {
    place(index, hash, item);
    index->n_items++;
}

/* Closes the gap: whoever stands behind it and would rather stand in it moves there. */
static void close_gap(struct hash_index *index, size_t gap) {
    size_t mask = index->n_slots - 1;
    for (size_t i = (gap + 1) & mask; index->slots[i].item != NULL; i = (i + 1) & mask) {
        size_t home = (size_t)index->slots[i].hash & mask;
        if (((i - home) & mask) >= ((i - gap) & mask)) {
            index->slots[gap] = index->slots[i];
            gap = i;
        }
    }
    index->slots[gap] = (struct hash_index_slot){0};
}

void hash_index_remove(struct hash_index *index, uint64_t hash, const void *item) {
    size_t mask = index->n_slots - 1;
    size_t i = (size_t)hash & mask;
    while (index->slots[i].item != item) {
        i = (i + 1) & mask;
    }
    close_gap(index, i);
    index->n_items--;
}
