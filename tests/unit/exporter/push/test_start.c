#include <errno.h>
#include <stdio.h>

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

static int push_total(struct push_owner *owner, uint64_t start, double total) {
    struct push_update update = {
        .name = "n",
        .type = PUSH_COUNTER,
        .op = PUSH_TOTAL,
        .values = &total,
        .n_values = 1,
        .ttl_ms = PUSH_TTL_DEFAULT,
    };
    return fixture_apply(store, owner, PUSH_MERGE, start, &update, 1);
}

static void test_totals_count_once_per_start(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    static const struct {
        uint64_t start;
        double total;
        const char *expected;
    } rows[] = {
        {1, 5, "5"}, {1, 5, "5"}, {1, 4, "5"},  {1, 7, "7"},  {2, 1, "8"},
        {1, 8, "9"}, {2, 1, "9"}, {2, 3, "11"}, {3, 0, "11"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_EQUAL_INT(0, push_total(a, rows[i].start, rows[i].total));
        char expected[80];
        snprintf(expected, sizeof(expected), "# TYPE n_total counter\nn_total{plugin=\"a\"} %s\n",
                 rows[i].expected);
        fixture_expect(store, expected);
    }
    TEST_ASSERT_EQUAL_INT(-EINVAL, push_total(a, 0, 9));
    push_owner_unref(store, a);
}

static void expect_n(unsigned n) {
    char page[64];
    snprintf(page, sizeof(page), "# TYPE n_total counter\nn_total{plugin=\"a\"} %u\n", n);
    fixture_expect(store, page);
}

enum { A_MINUTE_MS = 60 * 1000 };

static void test_many_starts_push_out_the_oldest(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    for (uint64_t start = 1; start <= 70; start++) {
        TEST_ASSERT_EQUAL_INT(0, push_total(a, start, 1));
        fixture_ms++;
    }
    TEST_ASSERT_EQUAL_INT(0, push_total(a, 70, 1));
    TEST_ASSERT_EQUAL_INT(0, push_total(a, 7, 1)); /* the oldest that is known */
    expect_n(70);
    TEST_ASSERT_EQUAL_INT(0, push_total(a, 6, 1)); /* is not: counts as another */
    TEST_ASSERT_EQUAL_INT(0, push_total(a, 7, 1)); /* has been heard of since */
    expect_n(71);
    push_owner_unref(store, a);
}

static void test_a_start_that_is_there_is_remembered(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    push_store_start_enter(store, 1);
    push_store_start_enter(store, 1);
    TEST_ASSERT_EQUAL_INT(0, push_total(a, 1, 1000));
    push_store_start_leave(store, 1);
    for (uint64_t start = 2; start <= 200; start++) {
        TEST_ASSERT_EQUAL_INT(0, push_total(a, start, 1));
        fixture_ms += 1000;
    }
    TEST_ASSERT_EQUAL_INT(0, push_total(a, 1, 1001)); /* silent for minutes, but connected */
    expect_n(1001 + 199);
    push_store_start_leave(store, 1);
    for (uint64_t start = 201; start <= 263; start++) {
        TEST_ASSERT_EQUAL_INT(0, push_total(a, start, 1));
        fixture_ms += 1000;
    }
    TEST_ASSERT_EQUAL_INT(0, push_total(a, 1, 1001)); /* one of the last 64 */
    expect_n(1001 + 262);
    for (uint64_t start = 301; start <= 364; start++) {
        TEST_ASSERT_EQUAL_INT(0, push_total(a, start, 1));
    }
    TEST_ASSERT_EQUAL_INT(0, push_total(a, 1, 1001)); /* another one, as far as is known */
    expect_n(2 * 1001 + 326);
    push_owner_unref(store, a);
}

static void test_a_refused_batch_forgets_no_start(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    for (uint64_t start = 1; start <= 64; start++) {
        TEST_ASSERT_EQUAL_INT(0, push_total(a, start, 1));
    }
    double values[] = {1, 1};
    struct push_update updates[] = {
        {.name = "n_total",
         .type = PUSH_COUNTER,
         .op = PUSH_TOTAL,
         .values = &values[0],
         .n_values = 1,
         .ttl_ms = PUSH_TTL_DEFAULT},
        {.name = "n_total",
         .type = PUSH_GAUGE,
         .op = PUSH_SET,
         .values = &values[1],
         .n_values = 1,
         .ttl_ms = PUSH_TTL_DEFAULT},
    };
    struct push_batch batch = {
        .mode = PUSH_MERGE, .start = 65, .updates = updates, .n_updates = ARRAY_LEN(updates)};
    TEST_ASSERT_EQUAL_INT(-EEXIST, push_store_apply(store, a, &batch, NULL, NULL));
    TEST_ASSERT_EQUAL_INT(0, push_total(a, 1, 1));
    expect_n(64);
    push_owner_unref(store, a);
}

static void test_a_reconnect_goes_on(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    TEST_ASSERT_EQUAL_INT(0, push_total(a, 1, 5));
    push_owner_unref(store, a);
    fixture_ms += 200000;
    push_store_expire(store, SIZE_MAX);
    a = fixture_plugin(store, "a");
    TEST_ASSERT_EQUAL_INT(0, push_total(a, 1, 6));
    fixture_expect(store, "# TYPE n_total counter\nn_total{plugin=\"a\"} 6\n");
    push_owner_unref(store, a);
}

static void test_numbers(void) {
    uint64_t number = push_start_number("s0");
    TEST_ASSERT_TRUE(number == push_start_number("s0")); /* also after a restart */
    TEST_ASSERT_TRUE(number != push_start_number("s00") && number != push_start_number("s1"));
    TEST_ASSERT_TRUE(push_start_number("") != 0);
}

static int push_as(struct push_owner *owner, uint64_t start, enum push_type type, size_t n_bounds) {
    static const double bounds[] = {1, 2, 3}, figures[] = {1, 1, 1, 1, 1};
    bool histogram = type == PUSH_HISTOGRAM;
    struct push_update update = {
        .name = "m",
        .type = type,
        .op = histogram ? PUSH_TOTAL : PUSH_SET,
        .values = figures,
        .n_values = histogram ? n_bounds + 2 : 1,
        .bounds = histogram ? bounds : NULL,
        .n_bounds = histogram ? n_bounds : 0,
        .ttl_ms = PUSH_TTL_DEFAULT,
    };
    return fixture_apply(store, owner, PUSH_MERGE, start, &update, 1);
}

static int push_connected(struct push_owner *owner, uint64_t start, enum push_type type,
                          size_t n_bounds) {
    push_store_start_enter(store, start);
    int r = push_as(owner, start, type, n_bounds);
    push_store_start_leave(store, start);
    return r;
}

/* Its author has changed type or buckets; but what somebody else uses stays as it is. */
static void test_a_new_process_may_mean_something_else(void) {
    struct push_owner *a = fixture_plugin(store, "a"), *b = fixture_plugin(store, "b");
    push_store_start_enter(store, 1);
    TEST_ASSERT_EQUAL_INT(0, push_as(a, 1, PUSH_HISTOGRAM, 2));
    TEST_ASSERT_EQUAL_INT(-EEXIST, push_as(a, 1, PUSH_HISTOGRAM, 3));        /* the same process */
    TEST_ASSERT_EQUAL_INT(-EEXIST, push_connected(a, 2, PUSH_HISTOGRAM, 3)); /* another beside it */
    TEST_ASSERT_EQUAL_INT(-EEXIST, push_connected(a, 2, PUSH_GAUGE, 0));
    push_store_start_leave(store, 1);
    TEST_ASSERT_EQUAL_INT(-EEXIST, push_connected(b, 2, PUSH_GAUGE, 0)); /* another plugin */
    TEST_ASSERT_EQUAL_INT(-EEXIST, push_as(a, 0, PUSH_GAUGE, 0));        /* one that does not say */
    struct push_owner *again = fixture_plugin(store, "a"); /* a third process, that may need it */
    TEST_ASSERT_EQUAL_INT(-EEXIST, push_connected(a, 2, PUSH_HISTOGRAM, 3));
    push_owner_unref(store, again);
    TEST_ASSERT_EQUAL_INT(0, push_connected(a, 2, PUSH_HISTOGRAM, 3));
    fixture_expect(store,
                   "# TYPE m histogram\n"
                   "m_bucket{plugin=\"a\",le=\"1.0\"} 1\nm_bucket{plugin=\"a\",le=\"2.0\"} 1\n"
                   "m_bucket{plugin=\"a\",le=\"3.0\"} 1\nm_bucket{plugin=\"a\",le=\"+Inf\"} 1\n"
                   "m_sum{plugin=\"a\"} 1\nm_count{plugin=\"a\"} 1\n");
    TEST_ASSERT_EQUAL_INT(0, push_connected(a, 3, PUSH_GAUGE, 0));
    fixture_expect(store, "# TYPE m gauge\nm{plugin=\"a\"} 1\n");
    TEST_ASSERT_EQUAL_INT(0, push_connected(b, 4, PUSH_GAUGE, 0));
    TEST_ASSERT_EQUAL_INT(-EEXIST, push_connected(a, 5, PUSH_HISTOGRAM, 2)); /* others have it */
    TEST_ASSERT_EQUAL_UINT64(2, push_store_stats(store).n_series);
    push_owner_unref(store, a);
    push_owner_unref(store, b);
}

/* Those who come by HTTP are never connected while they push. */
static void test_processes_without_connection_take_turns_of_a_minute(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    TEST_ASSERT_EQUAL_INT(0, push_as(a, 1, PUSH_HISTOGRAM, 2));
    TEST_ASSERT_EQUAL_INT(-EEXIST, push_as(a, 2, PUSH_HISTOGRAM, 3));
    fixture_ms += A_MINUTE_MS;
    TEST_ASSERT_EQUAL_INT(0, push_as(a, 2, PUSH_HISTOGRAM, 3));
    push_owner_unref(store, a);
}

/* A rate of the plugin becomes a gauge beside that of another. */
static void test_a_new_process_may_join_others(void) {
    struct push_owner *a = fixture_plugin(store, "a"), *b = fixture_plugin(store, "b");
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, a, "fps", PUSH_GAUGE, PUSH_SET, 1));
    struct push_update rate = {.name = "fps",
                               .type = PUSH_RATE,
                               .op = PUSH_INC,
                               .values = &(double){1},
                               .n_values = 1,
                               .ttl_ms = PUSH_TTL_DEFAULT};
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, b, PUSH_MERGE, 1, &rate, 1));
    push_store_start_enter(store, 2);
    struct push_update gauge = rate;
    gauge.type = PUSH_GAUGE;
    gauge.op = PUSH_SET;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, fixture_apply(store, b, PUSH_MERGE, 2, &gauge, 1),
                                  fixture_err.text);
    fixture_expect(store, "# TYPE fps gauge\nfps{plugin=\"a\"} 1\nfps{plugin=\"b\"} 1\n");
    push_store_start_leave(store, 2);
    push_owner_unref(store, a);
    push_owner_unref(store, b);
}
