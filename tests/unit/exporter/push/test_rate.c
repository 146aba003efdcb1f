#include "exporter/push/rate.h"

#include <unity.h>

static void test_says_nothing_within_the_first_second(void) {
    struct push_rate rate = {0};
    double mean;
    TEST_ASSERT_FALSE(push_rate_mean(&rate, 100, &mean));
    push_rate_note(&rate, 100, 1000);
    push_rate_note(&rate, 500, 1010);
    TEST_ASSERT_FALSE(push_rate_mean(&rate, 1099, &mean));
    TEST_ASSERT_TRUE(push_rate_mean(&rate, 1100, &mean));
    TEST_ASSERT_EQUAL_DOUBLE(10, mean);
}

/* A hundred a second, then nothing. */
static void test_mean_of_the_last_ten_seconds(void) {
    struct push_rate rate = {0};
    double mean = 0;
    for (int64_t ms = 0; ms <= 60000; ms += 10) {
        push_rate_note(&rate, ms, (double)ms / 10);
        if (ms >= 1000) {
            TEST_ASSERT_TRUE(push_rate_mean(&rate, ms, &mean));
            TEST_ASSERT_DOUBLE_WITHIN(1e-9, 100, mean);
        }
    }
    static const struct {
        int64_t ms;
        double mean;
    } rows[] = {{61000, 90}, {65000, 50}, {69500, 5}, {70000, 0}, {99000, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        TEST_ASSERT_TRUE(push_rate_mean(&rate, rows[i].ms, &mean));
        TEST_ASSERT_DOUBLE_WITHIN(1e-9, rows[i].mean, mean);
    }
}

/* The last frames of a plugin come between two points, and are not of all the time since. */
static void test_nothing_after_the_last_update(void) {
    static const struct {
        int64_t ms;
        double mean;
    } rows[] = {{4700, 2}, {10700, 2 * 4.0 / 10}, {14600, 2 * 0.1 / 10}, {14700, 0}, {99000, 0}};
    struct push_rate rate = {0};
    double mean = 0;
    for (int64_t ms = 0; ms <= 4700; ms += 100) {
        push_rate_note(&rate, ms, (double)ms / 500);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        TEST_ASSERT_TRUE(push_rate_mean(&rate, rows[i].ms, &mean));
        TEST_ASSERT_DOUBLE_WITHIN(1e-9, rows[i].mean, mean);
    }
}

static void test_rare_updates(void) {
    struct push_rate rate = {0};
    double mean = 0;
    for (int i = 0; i < 40; i++) {
        push_rate_note(&rate, i * INT64_C(4000), i * 8.0);
    }
    TEST_ASSERT_TRUE(push_rate_mean(&rate, 39 * 4000, &mean));
    TEST_ASSERT_DOUBLE_WITHIN(1e-9, 2, mean);
}
