#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "exporter/core/buf.h"

/* Hash of `n` bytes for tables in memory. Peers choose label values, so every process has another
 * seed: a peer cannot aim for collisions, and nothing may depend on the hash past a restart. */
uint32_t hash_bytes(const void *data, size_t n);

/* A seed for hash_seeded that a peer cannot guess, another one with every call. */
uint64_t hash_seed(void);

/* Both halves of the 128-bit product: every input bit reaches every output bit. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_word(const unsigned char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

/* Up to seven bytes as one number; different texts of one length give different numbers. */
static inline uint64_t hash_short(const unsigned char *bytes, size_t n) {
    if (n < 4) {
        return n == 0 ? 0 : (uint64_t)bytes[0] << 16 | (uint64_t)bytes[n / 2] << 8 | bytes[n - 1];
    }
    uint32_t head, tail; /* they overlap */
    memcpy(&head, bytes, sizeof(head));
    memcpy(&tail, bytes + n - sizeof(tail), sizeof(tail));
    return (uint64_t)head << 32 | tail;
}

/* The same under a seed of the caller's. */
static inline uint64_t hash_seeded(uint64_t seed, const void *data, size_t n) {
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    const unsigned char *bytes = data;
    uint64_t hash = hash_mix(seed ^ n, seed ^ odd); /* or a length could make up for a byte */
    size_t left = n;
    for (; left >= 8; bytes += 8, left -= 8) {
        hash = hash_mix(hash ^ hash_word(bytes), seed ^ odd);
    }
    return hash_mix(hash ^ hash_short(bytes, left), seed ^ odd);
}

/* Appends a UUID made from a purpose and a secret (a serial number), which stays secret. */
void hash_uuid(const char *purpose, const char *secret, struct buf *out);

/* Finds borrowed items by the caller's hash; the caller compares items of equal hashes. A zeroed
 * struct is an empty index. */
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

/* Empties the index, keeps its memory and makes room for `n` items. */
void hash_index_reset(struct hash_index *index, size_t n);

void hash_index_add(struct hash_index *index, uint64_t hash, void *item);

/* Removes one that is there. */
void hash_index_remove(struct hash_index *index, uint64_t hash, const void *item);

/* Walks over the items of one hash: `cursor` begins as 0; NULL at the end. */
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
