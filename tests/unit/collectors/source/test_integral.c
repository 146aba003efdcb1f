#include "collectors/source/integral.h"

#include <stddef.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

static struct integral integral;

void setUp(void) {
    integral = (struct integral){0};
}

static void add(int64_t at_ms, double value) {
    integral_add(&integral, at_ms * CLOCK_NS_PER_MS, value, CLOCK_NS_PER_SEC);
}

static void test_trapezoids(void) {
    static const struct {
        int64_t at_ms;
        double value;
        double total;
        double seconds;
    } steps[] = {
        {500, 8, 0, 0},          /* the first sample begins it */
        {1000, 8, 4, 0.5},       /* level */
        {1100, 0, 4.4, 0.6},     /* falling */
        {1200, 4, 4.6, 0.7},     /* rising */
        {1200, 6, 4.6, 0.7},     /* twice at one time: the later value holds */
        {2200, 6, 10.6, 1.7},    /* as long as a gap may be */
        {3201, 100, 10.6, 1.7},  /* longer than that: unknown */
        {3301, 100, 20.6, 1.8},  /* and on from there */
        {3401, -100, 25.6, 1.9}, /* below zero counts as zero */
        {3501, -100, 25.6, 2.0},
    };
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        add(steps[i].at_ms, steps[i].value);
        TEST_ASSERT_DOUBLE_WITHIN(1e-9, steps[i].total, integral.total);
        TEST_ASSERT_DOUBLE_WITHIN(1e-9, steps[i].seconds, integral.seconds);
    }
}

static void test_a_break_is_not_bridged(void) {
    add(0, 10);
    add(100, 10);
    integral_break(&integral);
    add(200, 10);
    TEST_ASSERT_DOUBLE_WITHIN(1e-9, 1, integral.total);
    add(300, 10);
    TEST_ASSERT_DOUBLE_WITHIN(1e-9, 2, integral.total);
    TEST_ASSERT_DOUBLE_WITHIN(1e-9, 0.2, integral.seconds);
}
