#include "collectors/source/label_pool.h"

#include <stdio.h>
#include <unity.h>

static void test_sets_live_until_the_pool_is_cleared(void) {
    struct label_pool pool = {0};
    for (int round = 0; round < 3; round++) {
        const struct labels *first = label_pool_render(&pool, "zone", "a\"b");
        for (int i = 0; i < 100; i++) {
            char value[12];
            snprintf(value, sizeof(value), "%d", i);
            TEST_ASSERT_NOT_NULL(label_pool_render(&pool, "cpu", value));
        }
        TEST_ASSERT_EQUAL_STRING("zone=\"a\\\"b\"", first->text);
        TEST_ASSERT_EQUAL_STRING("cpu=\"99\"", pool.rows[100]->text);
        label_pool_clear(&pool);
        TEST_ASSERT_EQUAL_UINT64(0, pool.n_rows);
    }
    label_pool_finish(&pool);
    TEST_ASSERT_NULL(pool.rows);
}
