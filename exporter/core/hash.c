#include "exporter/core/hash.h"

#include <nettle/sha2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "exporter/core/memory.h"

static uint64_t key[2];

/* The kernel hands every process 16 random bytes, which cannot fail or block as getrandom may at
 * boot. Before main, so that no thread sees the key change. */
__attribute__((constructor)) static void choose_key(void) {
    const void *random = (const void *)getauxval(AT_RANDOM);
    if (random != NULL) {
        memcpy(key, random, sizeof(key));
    }
}

uint32_t hash_bytes(const void *data, size_t n) {
    uint64_t hash = hash_seeded(key[0], data, n);
    return (uint32_t)(hash ^ hash >> 32);
}

uint64_t hash_seed(void) {
    static atomic_uint_fast64_t n_seeds;
    uint64_t n = atomic_fetch_add_explicit(&n_seeds, 1, memory_order_relaxed);
    return hash_seeded(key[1], &n, sizeof(n));
}

enum { UUID_SIZE = 16 };

void hash_uuid(const char *purpose, const char *secret, struct buf *out) {
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "%s %s", purpose, secret);
    uint8_t hash[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, text.len, (const uint8_t *)text.data);
    sha256_digest(&context, sizeof(hash), hash);
    hash[6] = (hash[6] & 0x0f) | 0x80; /* version 8: a format of our own (RFC 9562) */
    hash[8] = (hash[8] & 0x3f) | 0x80;
    for (size_t i = 0; i < UUID_SIZE; i++) {
        bool begins_group = i == 4 || i == 6 || i == 8 || i == 10;
        buf_printf(out, "%s%02x", begins_group ? "-" : "", hash[i]);
    }
}

/* ---- index ---- */

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
static void make_room(struct hash_index *index, size_t n) {
    size_t n_slots = index->n_slots != 0 ? index->n_slots : INDEX_MIN_SLOTS;
    while (n_slots < 2 * (index->n_items + n)) {
        n_slots *= 2;
    }
    if (n_slots == index->n_slots) {
        return;
    }
    struct hash_index grown = {.n_slots = n_slots, .n_items = index->n_items};
    grown.slots = mem_zalloc(n_slots, sizeof(*grown.slots));
    for (size_t i = 0; i < index->n_slots; i++) {
        if (index->slots[i].item != NULL) {
            place(&grown, index->slots[i].hash, index->slots[i].item);
        }
    }
    free(index->slots);
    *index = grown;
}

void hash_index_reset(struct hash_index *index, size_t n) {
    if (index->n_items > 0) {
        memset(index->slots, 0, index->n_slots * sizeof(*index->slots));
    }
    index->n_items = 0;
    make_room(index, n);
}

void hash_index_add(struct hash_index *index, uint64_t hash, void *item) {
    make_room(index, 1);
    place(index, hash, item);
    index->n_items++;
}

/* Moves items into the gap that a walk from their own slot would pass over. */
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
