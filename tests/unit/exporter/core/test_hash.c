#include "exporter/core/hash.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"

static void test_equal_bytes_hash_equal_at_any_address(void) {
    char room[128];
    const char *text = "cpu=\"0\",mode=\"idle\",node=\"0000\"";
    size_t n = strlen(text);
    for (size_t offset = 0; offset < 16; offset++) {
        memset(room, (int)offset, sizeof(room)); /* what is around must not matter */
        memcpy(room + offset, text, n);
        for (size_t len = 0; len <= n; len++) {
            TEST_ASSERT_EQUAL_HEX32(hash_bytes(text, len), hash_bytes(room + offset, len));
        }
    }
}

/* With 32 bits a chance collision among so few is about one in a million. */
static void test_every_bit_and_the_length_count(void) {
    unsigned char bytes[33] = {0};
    for (size_t len = 0; len <= 32; len++) {
        uint32_t hash = hash_bytes(bytes, len);
        TEST_ASSERT_NOT_EQUAL(hash, hash_bytes(bytes, len + 1));
        for (size_t bit = 0; bit < 8 * len; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            TEST_ASSERT_NOT_EQUAL(hash, hash_bytes(bytes, len));
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
}

/* Tables use the low bits: 65536 similar keys must fill about 63 % of as many slots. */
static void test_low_bits_are_spread(void) {
    enum { N = 65536 };
    char *used CLEANUP_FREE = calloc(N, 1);
    size_t n_used = 0;
    for (unsigned i = 0; i < N; i++) {
        char text[32];
        int n = snprintf(text, sizeof(text), "cpu=\"%u\"", i);
        uint32_t slot = hash_bytes(text, (size_t)n) % N;
        n_used += !used[slot];
        used[slot] = 1;
    }
    TEST_ASSERT_UINT64_WITHIN(N / 100, (uint64_t)(N * 0.632), n_used);
}

/* The key is chosen when a program starts, so ask this program again. */
static uint32_t hash_in_another_process(void) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);
    TEST_ASSERT_GREATER_THAN(0, n);
    path[n] = '\0';
    const char *emulator = getenv("WAAP_EMULATOR");
    struct buf command CLEANUP_BUF = {0};
    buf_printf(&command, "%s '%s'", emulator != NULL ? emulator : "", path);
    setenv("TEST_HASH_PRINT", "1", 1);
    FILE *out = popen(buf_str(&command), "r");
    unsetenv("TEST_HASH_PRINT");
    TEST_ASSERT_NOT_NULL(out);
    unsigned hash = 0;
    TEST_ASSERT_EQUAL_INT(1, fscanf(out, "%u", &hash));
    TEST_ASSERT_EQUAL_INT(0, pclose(out));
    return hash;
}

static void test_every_process_has_its_own_key(void) {
    uint32_t ours = hash_bytes("key", 3);
    bool differs = hash_in_another_process() != ours || hash_in_another_process() != ours;
    TEST_ASSERT_TRUE(differs);
}

static void test_seeds_differ(void) {
    uint64_t first = hash_seed();
    uint64_t second = hash_seed();
    TEST_ASSERT_TRUE(first != second);
    TEST_ASSERT_TRUE(hash_seeded(first, "x", 1) != hash_seeded(second, "x", 1));
}

/* Peers choose texts, but no seeds: texts that are alike under one must not be so under all. */
static void test_no_texts_are_equal_under_every_seed(void) {
    static const char *const pairs[][2] = {
        {"s2", "s23"}, {"12", "123"},     {"", "a"},
        {"a", "aa"},   {"aaaa", "aaaaa"}, {"aaaaaaa", "aaaaaaaa"},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        uint64_t seed = hash_seed();
        const char *a = pairs[i][0], *b = pairs[i][1];
        TEST_ASSERT_TRUE_MESSAGE(hash_seeded(seed, a, strlen(a)) != hash_seeded(seed, b, strlen(b)),
                                 b);
    }
    enum { LETTERS = 12, N = LETTERS + LETTERS * LETTERS + LETTERS * LETTERS * LETTERS };
    uint64_t *hashes CLEANUP_FREE = calloc(N, sizeof(*hashes));
    uint64_t seed = hash_seed();
    size_t n = 0;
    for (int len = 1; len <= 3; len++) {
        for (int i = 0; i < (int)(len == 1 ? 12 : len == 2 ? 144 : 1728); i++) {
            char text[3] = {(char)('0' + i % 12), (char)('0' + i / 12 % 12), (char)('0' + i / 144)};
            uint64_t hash = hash_seeded(seed, text, (size_t)len);
            for (size_t k = 0; k < n; k++) {
                TEST_ASSERT_TRUE(hashes[k] != hash);
            }
            hashes[n++] = hash;
        }
    }
    TEST_ASSERT_EQUAL_size_t(N, n);
}

static void expect_uuid(const char *purpose, const char *secret, const char *uuid) {
    struct buf out CLEANUP_BUF = {0};
    hash_uuid(purpose, secret, &out);
    TEST_ASSERT_EQUAL_STRING(uuid, buf_str(&out));
}

/* By sha256sum: `printf 'a b' | sha256sum`, with version and variant put in. */
static void test_uuid_as_others_compute_it(void) {
    expect_uuid("a", "b", "c8687a08-aa5d-8ed2-8443-28fa6a697ab8");
}

static void test_uuid_depends_on_purpose_and_secret(void) {
    struct buf one CLEANUP_BUF = {0}, two CLEANUP_BUF = {0}, three CLEANUP_BUF = {0};
    hash_uuid("x", "1", &one);
    hash_uuid("x", "2", &two);
    hash_uuid("y", "1", &three);
    TEST_ASSERT_EQUAL_size_t(36, one.len);
    TEST_ASSERT_TRUE(strcmp(buf_str(&one), buf_str(&two)) != 0);
    TEST_ASSERT_TRUE(strcmp(buf_str(&one), buf_str(&three)) != 0);
}

static bool has(const struct hash_index *index, uint64_t hash, const void *item) {
    size_t cursor = 0;
    const void *found;
    while ((found = hash_index_next(index, hash, &cursor)) != NULL) {
        if (found == item) {
            return true;
        }
    }
    return false;
}

static void test_empty_index(void) {
    struct hash_index index = {0};
    TEST_ASSERT_FALSE(has(&index, 5, &index));
    hash_index_finish(&index);
}

/* Few different hashes, so that runs grow, meet and wrap around. */
static void test_random_index_additions_and_removals(void) {
    enum { ITEMS = 500, ROUNDS = 20000 };
    struct hash_index index = {0};
    static int items[ITEMS];
    static bool there[ITEMS];
    size_t n = 0;
    srand(7);
    for (int round = 0; round < ROUNDS; round++) {
        int i = rand() % ITEMS;
        uint64_t hash = (uint64_t)(i % 97) * 31 - 40;
        TEST_ASSERT_EQUAL(there[i], has(&index, hash, &items[i]));
        if (there[i]) {
            hash_index_remove(&index, hash, &items[i]);
            n--;
        } else {
            hash_index_add(&index, hash, &items[i]);
            n++;
        }
        there[i] = !there[i];
        TEST_ASSERT_EQUAL_UINT64(n, index.n_items);
    }
    for (int i = 0; i < ITEMS; i++) {
        TEST_ASSERT_EQUAL(there[i], has(&index, (uint64_t)(i % 97) * 31 - 40, &items[i]));
    }
    hash_index_finish(&index);
}

void suiteSetUp(void) {
    if (getenv("TEST_HASH_PRINT") != NULL) {
        printf("%u\n", hash_bytes("key", 3));
        exit(0);
    }
}
