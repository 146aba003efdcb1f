#include "exporter/http/rate.h"

#include <unity.h>

#include "exporter/core/clock.h"

static const int64_t start_ns = 1000 * CLOCK_NS_PER_SEC;
static const struct web_config_rate_limit limit = {.interval_ms = 100, .burst = 3};

static int64_t at_ms(int64_t ms) {
    return start_ns + ms * CLOCK_NS_PER_MS;
}

/* How many of `n` requests at that moment are let in. */
static int burst(struct http_rate *rate, int n, int64_t ms) {
    int allowed = 0;
    for (int i = 0; i < n; i++) {
        allowed += http_rate_allow(rate, limit, at_ms(ms));
    }
    return allowed;
}

static void test_a_burst_and_then_one_per_interval(void) {
    struct http_rate rate = {0};
    TEST_ASSERT_EQUAL_INT(3, burst(&rate, 10, 0));
    TEST_ASSERT_EQUAL_INT(0, burst(&rate, 1, 99));
    TEST_ASSERT_EQUAL_INT(1, burst(&rate, 10, 100));
    TEST_ASSERT_EQUAL_INT(0, burst(&rate, 10, 199));
    TEST_ASSERT_EQUAL_INT(2, burst(&rate, 10, 300));
}

static void test_quiet_time_saves_no_more_than_a_burst(void) {
    struct http_rate rate = {0};
    TEST_ASSERT_EQUAL_INT(3, burst(&rate, 3, 0));
    TEST_ASSERT_EQUAL_INT(3, burst(&rate, 10, 1000000));
}

static void test_refusals_do_not_count(void) {
    struct http_rate rate = {0};
    burst(&rate, 1000, 0);
    TEST_ASSERT_EQUAL_INT(1, burst(&rate, 10, 100));
}

static void test_no_limit(void) {
    struct http_rate rate = {0};
    for (int i = 0; i < 1000; i++) {
        TEST_ASSERT_TRUE(http_rate_allow(&rate, (struct web_config_rate_limit){0}, start_ns));
    }
}

static void test_the_largest_limits_do_not_overflow(void) {
    struct http_rate rate = {0};
    struct web_config_rate_limit most = {.interval_ms = 60 * 60 * 1000, .burst = 1000000};
    TEST_ASSERT_TRUE(http_rate_allow(&rate, most, INT64_C(1) << 62));
    TEST_ASSERT_TRUE(http_rate_allow(&rate, most, INT64_C(1) << 62));
}
