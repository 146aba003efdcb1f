#include <string.h>

#include "tests/unit/exporter/push/push_fixture.h"

static struct push_store *store;

void setUp(void) {
    struct error err;
    struct push_store_config config = fixture_config();
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, &err));
}

void tearDown(void) {
    push_store_destroy(store);
}

static bool count_view(const struct push_series_view *series, void *context) {
    struct buf *out = context;
    buf_printf(out, "%s{%s}", series->name, series->text);
    for (size_t i = 0; i < series->n_values; i++) {
        buf_printf(out, " %g", series->values[i]);
    }
    buf_add_char(out, '\n');
    return true;
}

static bool is_named_b(const struct push_series_view *series, void *context) {
    (void)context;
    return strcmp(series->name, "b") == 0;
}

static bool is_named_y(const struct push_series_view *series, void *context) {
    (void)context;
    return strcmp(series->name, "y") == 0;
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
    TEST_ASSERT_EQUAL_STRING("r{plugin=\"a\"} 2\nr_total{plugin=\"a\"} 5\nb{plugin=\"a\"} 1\n",
                             out.data);
    buf_reset(&out);
    push_store_visit(store, NULL, count_view, &out);
    TEST_ASSERT_EQUAL_STRING(
        "r{plugin=\"a\"} 2\nr_total{plugin=\"a\"} 5\nb{plugin=\"a\"} 1\nb{plugin=\"b\"} 2\n",
        out.data);
    TEST_ASSERT_EQUAL_UINT64(2, push_store_remove_if(store, is_named_b, NULL));
    TEST_ASSERT_EQUAL_UINT64(2, push_store_stats(store).n_series);
    TEST_ASSERT_EQUAL_UINT64(1, push_store_remove_if(store, fixture_is_named, "r"));
    TEST_ASSERT_EQUAL_UINT64(0, push_store_stats(store).n_series); /* the counter, too */
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

static bool count_one(const struct push_series_view *series, void *context) {
    count_view(series, context);
    return false;
}

/* Series that go between two steps leave no gap, those that come then are passed over. */
static void test_visits_in_steps(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    static const char *const names[] = {"x", "y", "z"};
    for (size_t i = 0; i < 3; i++) {
        fixture_push(store, a, names[i], PUSH_GAUGE, PUSH_SET, (double)i);
    }
    struct push_place place = {.newest = push_store_newest(store)};
    struct buf out CLEANUP_BUF = {0};
    TEST_ASSERT_TRUE(push_store_visit_some(store, a, &place, count_one, &out));
    TEST_ASSERT_EQUAL_STRING("x{plugin=\"a\"} 0\n", buf_str(&out));
    fixture_push(store, a, "w", PUSH_GAUGE, PUSH_SET, 3);
    TEST_ASSERT_EQUAL_UINT64(1, push_store_remove_if(store, is_named_y, NULL));
    TEST_ASSERT_FALSE(push_store_visit_some(store, a, &place, count_one, &out));
    TEST_ASSERT_EQUAL_STRING("x{plugin=\"a\"} 0\nz{plugin=\"a\"} 2\n", buf_str(&out));
    TEST_ASSERT_FALSE(push_store_visit_some(store, a, &place, count_one, &out));
    push_owner_unref(store, a);
}

/* A step looks at no more than it was asked for, whatever goes between two of them. */
static void test_removals_in_steps(void) {
    static const char *const names[] = {"a", "b", "b_more", "c"};
    for (size_t n = 1; n < 10; n++) { /* less than two owners take */
        struct push_owner *owners[3];
        for (size_t i = 0; i < 3; i++) {
            owners[i] = fixture_plugin(store, names[i]);
            for (size_t k = 0; k < 4; k++) {
                char name[16];
                snprintf(name, sizeof(name), "%s_%zu", names[k], i);
                fixture_push(store, owners[i], name, PUSH_GAUGE, PUSH_SET, 1);
            }
            push_owner_unref(store, owners[i]);
        }
        struct push_cursor cursor;
        size_t n_removed = 0, n_before = 0;
        push_cursor_begin(store, &cursor);
        bool more = push_store_remove_some(store, &cursor, n, NULL, NULL, &n_removed);
        TEST_ASSERT_LESS_OR_EQUAL_size_t(n, n_removed);
        push_store_remove_owner(store, owners[1]); /* which may be under way */
        n_before = n_removed;
        while (more) {
            more = push_store_remove_some(store, &cursor, n, NULL, NULL, &n_removed);
            TEST_ASSERT_LESS_OR_EQUAL_size_t(n, n_removed - n_before);
            n_before = n_removed;
        }
        push_cursor_end(store, &cursor);
        TEST_ASSERT_EQUAL_UINT64(0, push_store_stats(store).n_series);
        TEST_ASSERT_EQUAL_UINT64(0, push_store_stats(store).n_owners);
    }
}
