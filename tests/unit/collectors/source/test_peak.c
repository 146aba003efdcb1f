#include "collectors/source/peak.h"

#include <unity.h>

#include "exporter/core/clock.h"

static struct peak peak;

void setUp(void) {
    peak_init(&peak, 60 * CLOCK_NS_PER_SEC);
}

static double get(int64_t at_ms) {
    double value = -1e9;
    TEST_ASSERT_TRUE(peak_get(&peak, at_ms * CLOCK_NS_PER_MS, &value));
    return value;
}

static void test_nothing_yet(void) {
    double value = 7;
    TEST_ASSERT_FALSE(peak_get(&peak, 12345, &value));
    TEST_ASSERT_EQUAL_DOUBLE(7, value);
}

static void test_a_burst_is_seen_for_the_length_of_the_window(void) {
    static const int64_t start_ms = 86400000;
    for (int64_t at_ms = start_ms; at_ms < start_ms + 200000; at_ms += 100) {
        int64_t age_ms = at_ms - (start_ms + 5000);
        peak_add(&peak, at_ms * CLOCK_NS_PER_MS, age_ms >= 0 && age_ms < 200 ? 0.9 : 0.1);
        if (age_ms >= 0 && age_ms <= 60000) {
            TEST_ASSERT_EQUAL_DOUBLE(0.9, get(at_ms));
        }
        if (age_ms < 0 || age_ms > 61000 + 200) {
            TEST_ASSERT_EQUAL_DOUBLE(0.1, get(at_ms));
        }
    }
}

static void test_negative_values_and_silence(void) {
    double value;
    peak_add(&peak, 5 * CLOCK_NS_PER_SEC, -0.4);
    peak_add(&peak, 6 * CLOCK_NS_PER_SEC, -0.3);
    TEST_ASSERT_EQUAL_DOUBLE(-0.3, get(6500));
    TEST_ASSERT_FALSE(peak_get(&peak, 600 * CLOCK_NS_PER_SEC, &value));
    peak_add(&peak, 601 * CLOCK_NS_PER_SEC, -5);
    TEST_ASSERT_EQUAL_DOUBLE(-5, get(601000));
}

static void test_a_window_shorter_than_its_slots(void) {
    peak_init(&peak, 10);
    peak_add(&peak, 1000, 3);
    double value = 0;
    TEST_ASSERT_TRUE(peak_get(&peak, 1010, &value));
    TEST_ASSERT_FALSE(peak_get(&peak, 2000, &value));
}
