#include <errno.h>
#include <math.h>

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

static void test_refusals(void) {
    char long_name[PUSH_MAX_NAME + 2] = {0};
    memset(long_name, 'a', PUSH_MAX_NAME + 1);
    const struct {
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
        {long_name, PUSH_GAUGE, PUSH_SET, 1, -E2BIG},
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
    static char long_value[PUSH_MAX_VALUE + 2];
    memset(long_value, 'a', PUSH_MAX_VALUE + 1);
    const struct {
        struct label labels[4];
        size_t n;
        int code;
    } rows[] = {
        {{{"b", "2"}, {"c", "x\"y"}}, 2, 0},    {{{"b", "1"}, {"a", "2"}}, 2, -EINVAL},
        {{{"a", "1"}, {"a", "2"}}, 2, -EINVAL}, {{{"a", ""}}, 1, -EINVAL},
        {{{"__name__", "z"}}, 1, -EINVAL},      {{{"node", "z"}}, 1, -EINVAL},
        {{{"plugin", "z"}}, 1, -EINVAL},        {{{"container", "z"}}, 1, -EINVAL},
        {{{"namespace", "z"}}, 1, -EINVAL},     {{{"pod", "z"}}, 1, -EINVAL},
        {{{"a:b", "z"}}, 1, -EINVAL},           {{{"a", "\xc3("}}, 1, -EINVAL},
        {{{"a", long_value}}, 1, -E2BIG},
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

static void test_counts_of_other_bounds(void) {
    static const struct {
        size_t n;
        const char *expected;
    } rows[] = {
        {1, "h: expected counts, count and sum, got one number"},
        {3, "h: counts: expected 2, one for each bound, got 1"},
        {5, "h: counts: expected 2, one for each bound, got 3"},
    };
    static const double bounds[] = {1, 2}, figures[] = {1, 2, 3, 4, 5};
    struct push_owner *a = fixture_plugin(store, "a");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct push_update update = {
            .name = "h",
            .type = PUSH_HISTOGRAM,
            .op = PUSH_TOTAL,
            .bounds = bounds,
            .n_bounds = ARRAY_LEN(bounds),
            .values = figures,
            .n_values = rows[i].n,
            .ttl_ms = PUSH_TTL_DEFAULT,
        };
        TEST_ASSERT_EQUAL_INT(-EINVAL, fixture_apply(store, a, PUSH_MERGE, 1, &update, 1));
        TEST_ASSERT_EQUAL_STRING(rows[i].expected, fixture_err.text);
    }
    push_owner_unref(store, a);
}

/* A label that the owner has is there on each of its samples, beside those of buckets. */
static void test_edges_among_labels_of_the_owner(void) {
    static const struct label edges[] = {{"le", "5"}, {"quantile", "5"}};
    static const double figures[] = {1, 1, 1}, bound = 0.5;
    static const struct {
        enum push_type type;
        const char *refused; /* because of this label; NULL: never */
    } rows[] = {{PUSH_GAUGE, NULL}, {PUSH_HISTOGRAM, "le"}, {PUSH_SUMMARY, "quantile"}};
    for (size_t i = 0; i < 2 * ARRAY_LEN(edges) * ARRAY_LEN(rows); i++) {
        const struct label *edge = &edges[i % 2];
        struct push_identity identity = {
            .plugin = i % 4 < 2 ? "a" : NULL, .group = i % 4 >= 2, .labels = edge, .n_labels = 1};
        bool single = rows[i / 4].type == PUSH_GAUGE;
        struct push_update update = {
            .name = "m",
            .type = rows[i / 4].type,
            .op = identity.group || rows[i / 4].type != PUSH_HISTOGRAM ? PUSH_SET : PUSH_INC,
            .values = figures,
            .n_values = single ? 1 : 3,
            .bounds = single ? NULL : &bound,
            .n_bounds = single ? 0 : 1,
            .ttl_ms = PUSH_TTL_DEFAULT,
        };
        struct push_owner *owner = NULL;
        TEST_ASSERT_EQUAL_INT(0, push_store_owner(store, &identity, &owner, NULL));
        const char *refused = rows[i / 4].refused;
        bool fits = refused == NULL || strcmp(refused, edge->name) != 0;
        int r = fixture_apply(store, owner, PUSH_MERGE, 0, &update, 1);
        TEST_ASSERT_EQUAL_INT_MESSAGE(fits ? 0 : -EINVAL, r, fixture_err.text);
        TEST_ASSERT_TRUE(fits || strstr(fixture_err.text, edge->name) != NULL);
        push_store_remove_owner(store, owner);
        push_owner_unref(store, owner);
    }
}
