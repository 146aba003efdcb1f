#include "exporter/core/hash.h"

#include <endian.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

/* SipHash with one round per word and three at the end (Aumasson and Bernstein, 2012). */

static uint64_t key[2];

/* The kernel hands every process 16 random bytes; that cannot fail or block, as getrandom may while
 * a machine boots. Before main, so that no thread sees the key change. */
__attribute__((constructor)) static void choose_key(void) {
    const void *random = (const void *)getauxval(AT_RANDOM);
    if (random != NULL) {
        memcpy(key, random, sizeof(key));
    }
}

static inline uint64_t rotate(uint64_t x, int n) {
    return x << n | x >> (64 - n);
}

static inline void sip_round(uint64_t v[static 4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32) + v[3];
    v[2] += v[1];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static inline void sip_word(uint64_t v[static 4], uint64_t word) {
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

static uint64_t siphash_1_3(const unsigned char *data, size_t n) {
    uint64_t v[4] = {
        key[0] ^ UINT64_C(0x736f6d6570736575),
        key[1] ^ UINT64_C(0x646f72616e646f6d),
        key[0] ^ UINT64_C(0x6c7967656e657261),
        key[1] ^ UINT64_C(0x7465646279746573),
    };
    uint64_t word;
    size_t left = n;
    for (; left >= sizeof(word); left -= sizeof(word), data += sizeof(word)) {
        memcpy(&word, data, sizeof(word));
        sip_word(v, le64toh(word));
    }
    word = 0;
    if (left > 0) {
        memcpy(&word, data, left);
    }
    sip_word(v, le64toh(word) | (uint64_t)n << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint32_t hash_bytes(const void *data, size_t n) {
    uint64_t hash = siphash_1_3(data, n);
    return (uint32_t)(hash ^ hash >> 32);
}

uint64_t hash_seed(void) {
    static atomic_uint_fast64_t n_seeds;
    uint64_t n = atomic_fetch_add_explicit(&n_seeds, 1, memory_order_relaxed);
    return siphash_1_3((const unsigned char *)&n, sizeof(n));
}
