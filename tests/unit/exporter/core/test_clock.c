#include "exporter/core/clock.h"

#include <unity.h>

#include "tests/unit/waiting.h"

static void test_monotonic_counts_nanoseconds(void) {
    int64_t start = clock_monotonic_ns();
    pace_ms(5);
    int64_t passed = clock_monotonic_ns() - start;
    TEST_ASSERT_GREATER_OR_EQUAL_INT64(5 * CLOCK_NS_PER_MS, passed);
    TEST_ASSERT_LESS_THAN_INT64(60 * CLOCK_NS_PER_SEC, passed);
}

static void test_wall_has_seconds_and_fractions(void) {
    time_t before = time(NULL);
    double start = clock_wall_seconds();
    TEST_ASSERT_TRUE((double)before <= start && start < (double)time(NULL) + 2);
    TEST_ASSERT_TRUE(BECOMES_TRUE(clock_wall_seconds() != start));
}
