#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds things by a hash that the caller computes; equal hashes are the caller's to tell apart. It
 * borrows the things. A zeroed struct is an empty index. */
struct hash_index {
    struct hash_index_slot *slots;
    size_t n_slots; /* a power of two, or 0 */
    size_t n_items;
};

struct hash_index_slot {
    uint64_t hash;
    void *item; /* NULL: free */
};

/* Frees the index and leaves it empty. */
void hash_index_finish(struct hash_index *index);

/* Makes room for `n` more, so that as many additions cannot fail. False when memory is out. */
bool hash_index_reserve(struct hash_index *index, size_t n);

/* Adds one; there must be room. */
void hash_index_add(struct hash_index *index, uint64_t hash, void *item);

/* Removes one that is there. */
void hash_index_remove(struct hash_index *index, uint64_t hash, const void *item);

/* Walks over the things of one hash: `cursor` begins as 0; NULL at the end. */
static inline void *hash_index_next(const struct hash_index *index, uint64_t hash, size_t *cursor) {
    size_t mask = index->n_slots - 1;
    while (*cursor < index->n_slots) {
        const struct hash_index_slot *slot = &index->slots[(hash + (*cursor)++) & mask];
        if (slot->item == NULL) {
            return NULL;
        }
        if (slot->hash == hash) {
            return slot->item;
        }
    }
    return NULL;
}
