#include "plugin/c/plugin_metric.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "plugin/c/plugin_client.h"

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t dropped_before;

void setUp(void) {
    dropped_before = atomic_load(&waap_n_dropped);
}

/* The client's thread looks at it, too. */
static bool is_changed(struct waap_metric *metric) {
    pthread_mutex_lock(&waap_lock);
    bool changed = waap_metric_changed(metric);
    pthread_mutex_unlock(&waap_lock);
    return changed;
}

static uint64_t dropped(void) {
    return atomic_load(&waap_n_dropped) - dropped_before;
}

static void test_same_name_and_labels_are_one_series(void) {
    struct waap_metric *one = waap_counter("one_total", NULL, "b", "2", "a", "1", NULL);
    TEST_ASSERT_NOT_NULL(one);
    TEST_ASSERT_EQUAL_PTR(one, waap_counter("one_total", "other help", "a", "1", "b", "2", NULL));
    struct waap_metric *other = waap_counter("one_total", NULL, "a", "1", "b", "3", NULL);
    TEST_ASSERT_NOT_NULL(other);
    TEST_ASSERT_TRUE(one != other);
    TEST_ASSERT_TRUE(one != waap_counter("one_total", NULL, NULL));
}

static void test_the_first_record_decides(void) {
    struct waap_metric *fps = waap_metric("by_use_fps"), *acc = waap_metric("by_use_acc");
    TEST_ASSERT_FALSE(is_changed(fps));
    TEST_ASSERT_TRUE(isnan(waap_read(fps)));
    waap_inc(fps);
    waap_add(fps, 2);
    TEST_ASSERT_EQUAL_INT(WAAP_RATE, atomic_load(&fps->type));
    TEST_ASSERT_EQUAL_DOUBLE(3, waap_read(fps));
    TEST_ASSERT_TRUE(is_changed(fps));
    waap_set(acc, -0.5);
    TEST_ASSERT_EQUAL_INT(WAAP_GAUGE, atomic_load(&acc->type));
    TEST_ASSERT_EQUAL_UINT64(0, dropped());
    waap_set(fps, 1);
    waap_inc(acc);
    waap_add(acc, 1);
    waap_observe(acc, 1);
    TEST_ASSERT_EQUAL_UINT64(4, dropped());
    TEST_ASSERT_EQUAL_DOUBLE(3, waap_read(fps));
    TEST_ASSERT_EQUAL_DOUBLE(-0.5, waap_read(acc));
    TEST_ASSERT_EQUAL_PTR(fps, waap_metric("by_use_fps"));
    TEST_ASSERT_EQUAL_PTR(fps, waap_rate("by_use_fps", NULL, NULL));
    TEST_ASSERT_NULL(waap_gauge("by_use_fps", NULL, NULL));
    TEST_ASSERT_NULL(waap_histogram("by_use_fps", NULL, NULL));
    TEST_ASSERT_EQUAL_PTR(acc, waap_gauge("by_use_acc", NULL, NULL));
    waap_inc(acc); /* of a declared gauge */
    TEST_ASSERT_EQUAL_DOUBLE(0.5, waap_read(acc));
}

static void test_a_declaration_decides(void) {
    struct waap_metric *late = waap_metric("by_use_late");
    waap_observe(late, 1);
    TEST_ASSERT_EQUAL_UINT64(1, dropped());
    TEST_ASSERT_EQUAL_PTR(late, waap_counter("by_use_late", NULL, NULL));
    waap_set(late, 1);
    TEST_ASSERT_EQUAL_UINT64(2, dropped());
    struct waap_metric *total = waap_counter("by_use_total", NULL, NULL);
    TEST_ASSERT_EQUAL_PTR(total, waap_metric("by_use_total"));
    waap_histogram("by_use_seconds", NULL, NULL);
    TEST_ASSERT_NULL(waap_metric("by_use_seconds"));
}

static void test_what_cannot_be(void) {
    static const double falling[] = {1, 0.5}, twice[] = {1, 1}, nan[] = {NAN}, none[] = {INFINITY};
    static const double bounds[] = {1, 2, INFINITY};
    static const char *const odd[] = {"name", NULL}, *const empty[] = {"", "value", NULL};
    static const char *const same[] = {"cam", "1", "x", "2", "cam", "1", NULL};
    static const char *const cleaned[] = {"a-b", "1", "a.b", "2", NULL};
    waap_counter("taken_total", NULL, NULL);
    waap_histogram("taken_seconds", NULL, NULL);
    const struct {
        struct waap_metric_spec spec;
        int error;
    } cases[] = {
        {{.name = NULL}, EINVAL},
        {{.name = ""}, EINVAL},
        {{.name = "x", .type = WAAP_BY_USE + 1}, EINVAL},
        {{.name = "x", .ttl_seconds = -1}, EINVAL},
        {{.name = "x", .ttl_seconds = NAN}, EINVAL},
        {{.name = "x", .labels = odd}, EINVAL},
        {{.name = "x", .labels = empty}, EINVAL},
        {{.name = "x", .labels = same}, EINVAL},
        {{.name = "x", .labels = cleaned}, EINVAL},
        {{.name = "x", .type = WAAP_HISTOGRAM, .bounds = falling, .n_bounds = 2}, EINVAL},
        {{.name = "x", .type = WAAP_HISTOGRAM, .bounds = twice, .n_bounds = 2}, EINVAL},
        {{.name = "x", .type = WAAP_HISTOGRAM, .bounds = nan, .n_bounds = 1}, EINVAL},
        {{.name = "x", .type = WAAP_HISTOGRAM, .bounds = none, .n_bounds = 1}, EINVAL},
        {{.name = "x", .type = WAAP_HISTOGRAM, .bounds = bounds, .n_bounds = 0}, EINVAL},
        {{.name = "taken_total", .type = WAAP_GAUGE}, EEXIST},
        {{.name = "taken_seconds", .type = WAAP_HISTOGRAM, .bounds = bounds, .n_bounds = 3},
         EEXIST},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        errno = 0;
        TEST_ASSERT_NULL(waap_metric_new(&cases[i].spec));
        TEST_ASSERT_EQUAL_INT(cases[i].error, errno);
    }
    char *endless = calloc(1, 10000);
    memset(endless, 'x', 9999);
    TEST_ASSERT_NULL(waap_counter(endless, NULL, NULL));
    TEST_ASSERT_NULL(waap_counter("y", NULL, "label", endless, NULL));
    free(endless);
}

static void test_what_is_no_record_is_dropped_and_counted(void) {
    struct waap_metric *counter = waap_counter("dropping_total", NULL, NULL);
    struct waap_metric *gauge = waap_gauge("dropping", NULL, NULL);
    struct waap_metric *histogram = waap_histogram("dropping_seconds", NULL, NULL);
    waap_inc(NULL);
    waap_add(NULL, 1);
    waap_set(NULL, 1);
    waap_observe(NULL, 1);
    TEST_ASSERT_EQUAL_UINT64(4, dropped());
    waap_add(counter, -1);
    waap_add(counter, NAN);
    waap_add(counter, INFINITY);
    waap_set(counter, 1);
    waap_observe(counter, 1);
    TEST_ASSERT_EQUAL_UINT64(9, dropped());
    waap_add(gauge, INFINITY);
    waap_add(gauge, NAN);
    waap_observe(gauge, 1);
    TEST_ASSERT_EQUAL_UINT64(12, dropped());
    TEST_ASSERT_FALSE(is_changed(gauge));
    waap_observe(histogram, NAN);
    waap_observe(histogram, INFINITY);
    waap_inc(histogram);
    waap_add(histogram, 1);
    waap_set(histogram, 1);
    TEST_ASSERT_EQUAL_UINT64(17, dropped());
    TEST_ASSERT_EQUAL_UINT64(0, waap_metric_read(histogram).whole);
    TEST_ASSERT_EQUAL_UINT64(0, waap_metric_read(counter).whole);
}

static void test_sums_stay_numbers(void) {
    struct waap_metric *histogram = waap_histogram("huge_seconds", NULL, NULL);
    waap_observe(histogram, 1e308);
    waap_observe(histogram, 1e308);
    struct waap_reading reading = waap_metric_read(histogram);
    TEST_ASSERT_EQUAL_UINT64(1, reading.whole);
    TEST_ASSERT_TRUE(reading.rest == 1e308);
    TEST_ASSERT_EQUAL_UINT64(1, dropped());
}

static void test_gauges_go_both_ways(void) {
    struct waap_metric *gauge = waap_gauge("both_ways", NULL, NULL);
    TEST_ASSERT_FALSE(is_changed(gauge));
    waap_inc(gauge);
    waap_add(gauge, -2.5);
    TEST_ASSERT_TRUE(is_changed(gauge));
    TEST_ASSERT_TRUE(waap_metric_read(gauge).rest == -1.5);
}

static void test_buckets_at_their_bounds(void) {
    static const double bounds[] = {1, 2, 3, INFINITY};
    struct waap_metric *histogram = waap_metric_new(&(struct waap_metric_spec){
        .type = WAAP_HISTOGRAM, .name = "at_bounds", .bounds = bounds, .n_bounds = 4});
    TEST_ASSERT_EQUAL_size_t(3, histogram->n_bounds);
    static const double values[] = {-5, 1, 1.5, 2, 2.0000001, 3, 4, 1e300};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        waap_observe(histogram, values[i]);
    }
    static const uint64_t wanted[] = {2, 2, 2, 2};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        TEST_ASSERT_EQUAL_UINT64(wanted[i], atomic_load(&histogram->buckets[i]));
    }
}

enum { N_THREADS = 4, N_EACH = 50000 };

static struct waap_metric *shared[3];

static void *record(void *unused) {
    (void)unused;
    for (int i = 0; i < N_EACH; i++) {
        waap_inc(shared[0]);
        waap_add(shared[1], 0.5);
        waap_observe(shared[2], 0.25);
    }
    return NULL;
}

static void test_threads_lose_nothing(void) {
    shared[0] = waap_counter("threads_total", NULL, NULL);
    shared[1] = waap_rate("threads", NULL, NULL);
    shared[2] = waap_histogram("threads_seconds", NULL, NULL);
    pthread_t threads[N_THREADS];
    for (size_t i = 0; i < N_THREADS; i++) {
        TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, record, NULL));
    }
    for (size_t i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    TEST_ASSERT_EQUAL_UINT64(N_THREADS * N_EACH, waap_metric_read(shared[0]).whole);
    TEST_ASSERT_TRUE(waap_metric_read(shared[1]).rest == N_THREADS * N_EACH * 0.5);
    TEST_ASSERT_EQUAL_UINT64(N_THREADS * N_EACH, waap_metric_read(shared[2]).whole);
    TEST_ASSERT_TRUE(waap_metric_read(shared[2]).rest == N_THREADS * N_EACH * 0.25);
}

static void test_series_are_bounded(void) {
    char value[16];
    errno = 0;
    for (int i = 0; i < 70; i++) {
        snprintf(value, sizeof(value), "%d", i);
        waap_inc(waap_counter("many_total", NULL, "i", value, NULL));
    }
    TEST_ASSERT_EQUAL_INT(ENOSPC, errno);
    TEST_ASSERT_TRUE(dropped() > 0);
    TEST_ASSERT_EQUAL_UINT64(64, waap_get_stats().n_series);
}

static int configured_twice;

static void test_configured_with_a_label_twice(void) {
    TEST_ASSERT_EQUAL_INT(-EINVAL, configured_twice);
}

static void test_configured_too_late(void) {
    TEST_ASSERT_EQUAL_INT(-EBUSY, waap_configure(&(struct waap_options){0}));
}

void suiteSetUp(void) {
    static const char *const twice[] = {"cam", "1", "cam", "2", NULL};
    configured_twice = waap_configure(&(struct waap_options){.labels = twice});
    waap_configure(&(struct waap_options){.socket = "/nonexistent/push.sock", .max_series = 64});
}
