#include "profiler/analysis/timeline.h"

#include <unity.h>

/* Whatever the number of samples: few bins, no sample lost, all in order. */
static void test_any_length(void) {
    for (size_t n = 1; n < 300000; n = n * 3 + 1) {
        struct timeline timeline = {0};
        for (size_t i = 0; i < n; i++) {
            timeline_add(&timeline, (double)i, (double)(i % 7));
        }
        TEST_ASSERT_FALSE(timeline.failed);
        TEST_ASSERT_LESS_OR_EQUAL(TIMELINE_BINS, timeline.n_bins);
        TEST_ASSERT_TRUE(timeline.n_bins == n || timeline.n_bins > TIMELINE_BINS / 2 - 1);
        size_t samples = 0;
        double sum = 0, expected = 0;
        for (size_t i = 0; i < timeline.n_bins; i++) {
            samples += timeline.bins[i].n;
            sum += timeline.bins[i].sum;
            TEST_ASSERT_TRUE(i == 0 || timeline.bins[i].t > timeline.bins[i - 1].t);
        }
        for (size_t i = 0; i < n; i++) {
            expected += (double)(i % 7);
        }
        TEST_ASSERT_EQUAL(n, samples);
        TEST_ASSERT_EQUAL_DOUBLE(expected, sum);
        TEST_ASSERT_EQUAL_DOUBLE((double)(n - 1), timeline.bins[timeline.n_bins - 1].t);
        timeline_finish(&timeline);
    }
}

/* One spike among many samples stays visible. */
static void test_peaks_stay(void) {
    struct timeline timeline = {0};
    for (size_t i = 0; i < 100000; i++) {
        timeline_add(&timeline, (double)i, i == 31234 ? 99 : i == 31235 ? -5 : 1);
    }
    double min = 0, max = 0;
    for (size_t i = 0; i < timeline.n_bins; i++) {
        min = timeline.bins[i].min < min ? timeline.bins[i].min : min;
        max = timeline.bins[i].max > max ? timeline.bins[i].max : max;
    }
    TEST_ASSERT_EQUAL_DOUBLE(99, max);
    TEST_ASSERT_EQUAL_DOUBLE(-5, min);
    timeline_finish(&timeline);
}
