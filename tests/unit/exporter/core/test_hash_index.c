#include "exporter/core/hash_index.h"

#include <stdlib.h>
#include <unity.h>

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

static void test_empty(void) {
    struct hash_index index = {0};
    TEST_ASSERT_FALSE(has(&index, 5, &index));
    hash_index_finish(&index);
}

/* Few different hashes, so that runs grow, meet and wrap around. */
static void test_random_additions_and_removals(void) {
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
            TEST_ASSERT_TRUE(hash_index_reserve(&index, 1));
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
