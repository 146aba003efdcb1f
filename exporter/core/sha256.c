#include "exporter/core/sha256.h"

#include <endian.h>
#include <string.h>

enum { BLOCK_SIZE = 64, LENGTH_SIZE = 8, N_ROUNDS = 64 };

/* The first 32 bits behind the point of the cube roots of the first 64 primes. */
static const uint32_t constants[N_ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n) {
    return x >> n | x << (32 - n);
}

static void expand(const uint8_t *block, uint32_t *w) {
    for (size_t i = 0; i < 16; i++) {
        uint32_t word;
        memcpy(&word, block + 4 * i, sizeof(word));
        w[i] = be32toh(word);
    }
    for (size_t i = 16; i < N_ROUNDS; i++) {
        uint32_t a = w[i - 15];
        uint32_t b = w[i - 2];
        uint32_t sigma0 = rotate(a, 7) ^ rotate(a, 18) ^ a >> 3;
        uint32_t sigma1 = rotate(b, 17) ^ rotate(b, 19) ^ b >> 10;
        w[i] = sigma1 + w[i - 7] + sigma0 + w[i - 16];
    }
}

/* The standard's a to h are s[0] to s[7]. */
static void add_block(uint32_t *state, const uint8_t *block) {
    uint32_t w[N_ROUNDS];
    uint32_t s[8];
    expand(block, w);
    memcpy(s, state, sizeof(s));
    for (size_t i = 0; i < N_ROUNDS; i++) {
        uint32_t sum1 = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t t1 = s[7] + sum1 + choice + constants[i] + w[i];
        uint32_t sum0 = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        memmove(s + 1, s, 7 * sizeof(*s));
        s[4] += t1;
        s[0] = t1 + sum0 + majority;
    }
    for (size_t i = 0; i < 8; i++) {
        state[i] += s[i];
    }
}

void sha256(const void *data, size_t len, uint8_t ret_hash[SHA256_SIZE]) {
    /* The same bits of the square roots of the first eight primes. */
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint8_t *at = data;
    size_t left = len;
    for (; left >= BLOCK_SIZE; left -= BLOCK_SIZE, at += BLOCK_SIZE) {
        add_block(state, at);
    }
    /* The rest, a one bit, zeros, and the length in bits at the end of a block. */
    uint8_t tail[2 * BLOCK_SIZE] = {0};
    size_t tail_size = left + 1 + LENGTH_SIZE > BLOCK_SIZE ? 2 * BLOCK_SIZE : BLOCK_SIZE;
    uint64_t bits = htobe64((uint64_t)len * 8);
    if (left > 0) {
        memcpy(tail, at, left);
    }
    tail[left] = 0x80;
    memcpy(tail + tail_size - LENGTH_SIZE, &bits, LENGTH_SIZE);
    for (size_t i = 0; i < tail_size; i += BLOCK_SIZE) {
        add_block(state, tail + i);
    }
    for (size_t i = 0; i < 8; i++) {
        uint32_t word = htobe32(state[i]);
        memcpy(ret_hash + 4 * i, &word, sizeof(word));
    }
}
