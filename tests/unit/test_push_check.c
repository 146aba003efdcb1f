#include <errno.h>
#include <math.h>

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

static void test_refusals(void) {
    static const struct {
        const char *name;
        enum push_type type;
        enum push_op op;
        double value;
        int code;
    } rows[] = {
        {"c", PUSH_COUNTER, PUSH_INC, -1, -EINVAL},
        {"c", PUSH_COUNTER, PUSH_INC, NAN, -EINVAL},
        {"c", PUSH_COUNTER, PUSH_INC, INFINITY, -EINVAL},
        {"c", PUSH_COUNTER, PUSH_SET, 1, -EINVAL},
        {"c", PUSH_COUNTER, PUSH_OBSERVE, 1, -EINVAL},
        {"c", PUSH_RATE, PUSH_SET, 1, -EINVAL},
        {"c", PUSH_RATE, PUSH_TOTAL, -1, -EINVAL},
        {"g", PUSH_GAUGE, PUSH_INC, NAN, -EINVAL},
        {"g", PUSH_GAUGE, PUSH_TOTAL, 1, -EINVAL},
        {"h", PUSH_HISTOGRAM, PUSH_INC, 1, -EINVAL},
        {"h", PUSH_HISTOGRAM, PUSH_OBSERVE, NAN, -EINVAL},
        {"h", PUSH_HISTOGRAM, PUSH_OBSERVE, INFINITY, -EINVAL},
        {"u", PUSH_UNSAID, PUSH_SET, 1, -EINVAL},
        {"", PUSH_GAUGE, PUSH_SET, 1, -EINVAL},
        {"1x", PUSH_GAUGE, PUSH_SET, 1, -EINVAL},
        {"a b", PUSH_GAUGE, PUSH_SET, 1, -EINVAL},
        {"a\xff", PUSH_GAUGE, PUSH_SET, 1, -EINVAL},
        {"waap_x", PUSH_GAUGE, PUSH_SET, 1, -EPERM},
        {"a23456789012345678901234567890123456789012345", PUSH_GAUGE, PUSH_SET, 1, -E2BIG},
    };
    struct push_owner *a = fixture_plugin(store, "a");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int r = fixture_push(store, a, rows[i].name, rows[i].type, rows[i].op, rows[i].value);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].code, r, rows[i].name);
        TEST_ASSERT_GREATER_THAN(0, strlen(fixture_err.text));
    }
    fixture_expect(store, "");
    TEST_ASSERT_EQUAL_UINT64(0, push_store_stats(store).n_series);
    push_owner_unref(store, a);
}

static void test_odd_values(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    fixture_push(store, a, "c", PUSH_COUNTER, PUSH_INC, 1e308);
    fixture_push(store, a, "c", PUSH_COUNTER, PUSH_INC, 1e308);
    fixture_push(store, a, "c", PUSH_COUNTER, PUSH_INC, 1);
    fixture_push(store, a, "g", PUSH_GAUGE, PUSH_SET, -INFINITY);
    fixture_push(store, a, "i", PUSH_GAUGE, PUSH_SET, 18446744073709551615.0);
    fixture_expect(store, "# TYPE c_total counter\nc_total{plugin=\"a\"} +Inf\n"
                          "# TYPE g gauge\ng{plugin=\"a\"} -Inf\n"
                          "# TYPE i gauge\ni{plugin=\"a\"} 1.8446744073709552e+19\n");
    push_owner_unref(store, a);
}

static void test_labels(void) {
    static const struct {
        struct label labels[4];
        size_t n;
        int code;
    } rows[] = {
        {{{"b", "2"}, {"c", "x\"y"}}, 2, 0},
        {{{"b", "1"}, {"a", "2"}}, 2, -EINVAL},
        {{{"a", "1"}, {"a", "2"}}, 2, -EINVAL},
        {{{"a", ""}}, 1, -EINVAL},
        {{{"__name__", "z"}}, 1, -EINVAL},
        {{{"node", "z"}}, 1, -EINVAL},
        {{{"plugin", "z"}}, 1, -EINVAL},
        {{{"a:b", "z"}}, 1, -EINVAL},
        {{{"a", "\xc3("}}, 1, -EINVAL},
        {{{"a", "123456789012345678901"}}, 1, -E2BIG},
        {{{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "1"}}, 4, -E2BIG},
    };
    struct push_owner *a = fixture_plugin(store, "a");
    static const double one = 1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct push_update update = {
            .name = "m",
            .type = PUSH_GAUGE,
            .labels = rows[i].labels,
            .n_labels = rows[i].n,
            .values = &one,
            .n_values = 1,
            .ttl_ms = PUSH_TTL_DEFAULT,
        };
        int r = fixture_apply(store, a, PUSH_MERGE, 0, &update, 1);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].code, r, rows[i].labels[0].name);
    }
    fixture_expect(store, "# TYPE m gauge\nm{b=\"2\",c=\"x\\\"y\",plugin=\"a\"} 1\n");
    push_owner_unref(store, a);
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_refusals);
    RUN_TEST(test_odd_values);
    RUN_TEST(test_labels);
    return UNITY_END();
}
