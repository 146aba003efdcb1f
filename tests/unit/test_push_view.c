#include <string.h>

#include "push_fixture.h"

static struct push_store *store;

void setUp(void) {
    struct error err;
    struct push_store_config config = fixture_config();
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, &err));
}

void tearDown(void) {
    push_store_destroy(store);
}

static void count_view(const struct push_series_view *series, void *context) {
    struct buf *out = context;
    buf_printf(out, "%s{%s}", series->name, series->text);
    for (size_t i = 0; i < series->n_values; i++) {
        buf_printf(out, " %g", series->values[i]);
    }
    buf_add_char(out, '\n');
}

static bool is_named_b(const struct push_series_view *series, void *context) {
    (void)context;
    return strcmp(series->name, "b") == 0;
}

static void test_views(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    struct push_owner *b = fixture_plugin(store, "b");
    fixture_push(store, a, "r", PUSH_RATE, PUSH_INC, 1);
    fixture_push(store, a, "b", PUSH_GAUGE, PUSH_SET, 1);
    fixture_push(store, b, "b", PUSH_GAUGE, PUSH_SET, 2);
    fixture_ms += 2000;
    fixture_push(store, a, "r", PUSH_RATE, PUSH_INC, 4);
    struct buf out CLEANUP_BUF = {0};
    push_store_visit(store, a, count_view, &out);
    TEST_ASSERT_EQUAL_STRING("r{plugin=\"a\"} 5 2\nb{plugin=\"a\"} 1\n", out.data);
    buf_reset(&out);
    push_store_visit(store, NULL, count_view, &out);
    TEST_ASSERT_EQUAL_STRING("r{plugin=\"a\"} 5 2\nb{plugin=\"a\"} 1\nb{plugin=\"b\"} 2\n",
                             out.data);
    TEST_ASSERT_EQUAL_UINT64(2, push_store_remove_if(store, is_named_b, NULL));
    TEST_ASSERT_EQUAL_UINT64(1, push_store_stats(store).n_series);
    push_owner_unref(store, a);
    push_owner_unref(store, b);
}

static void test_a_walk_with_pauses(void) {
    TEST_ASSERT_NULL(push_store_owner_after(store, 0));
    struct push_owner *owners[4];
    uint64_t numbers[4];
    for (size_t i = 0; i < 4; i++) {
        owners[i] = fixture_plugin(store, (const char *[]){"c", "b", "d", "a"}[i]);
        numbers[i] = push_owner_view(store, owners[i]).number;
        TEST_ASSERT_EQUAL_PTR(owners[0], push_store_owner_after(store, 0));
    }
    TEST_ASSERT_EQUAL_PTR(owners[2], push_store_owner_after(store, numbers[1]));
    push_owner_unref(store, owners[1]); /* it goes, having nothing */
    push_owner_unref(store, owners[2]);
    TEST_ASSERT_EQUAL_PTR(owners[3], push_store_owner_after(store, numbers[1]));
    TEST_ASSERT_NULL(push_store_owner_after(store, numbers[3]));
    push_owner_unref(store, owners[0]);
    push_owner_unref(store, owners[3]);
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_views);
    RUN_TEST(test_a_walk_with_pauses);
    return UNITY_END();
}
