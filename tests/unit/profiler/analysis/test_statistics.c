#include "profiler/analysis/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void near(double expected, double actual) {
    TEST_ASSERT_DOUBLE_WITHIN(1e-9 + 1e-6 * fabs(expected), expected, actual);
}

/* Python: statistics.mean, stdev. */
static void test_moments(void) {
    double values[] = {3.5, 1.25, 9, 7.75, 2, 2, 8.5};
    struct moments moments = moments_of(values, ARRAY_LEN(values));
    near(4.857142857142857, moments.mean);
    near(3.415214557855842, moments_sd(&moments));
    near(3.415214557855842 / 4.857142857142857, moments_cv(&moments));
    near(2.446912 * 3.415214557855842 / sqrt(7), moments_ci95(&moments));
    near(1.25, moments.min);
    near(9, moments.max);
}

static void test_few_values(void) {
    struct moments none = {0};
    near(0, moments_sd(&none));
    near(0, moments_cv(&none));
    double one = -4;
    struct moments moments = moments_of(&one, 1);
    near(0, moments_sd(&moments));
    near(-4, moments.min);
    near(-4, moments.max);
}

/* A large offset must not eat the deviation. */
static void test_moments_are_stable(void) {
    double values[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
    struct moments moments = moments_of(values, ARRAY_LEN(values));
    near(sqrt(30), moments_sd(&moments));
}

/* Printed tables of Student's t, two-sided 95 %. */
static void test_student(void) {
    static const struct {
        size_t degrees;
        double t;
    } rows[] = {{1, 12.7062}, {4, 2.7764},  {9, 2.2622},   {30, 2.0423},
                {31, 2.0395}, {60, 2.0003}, {120, 1.9799}, {100000, 1.96}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_DOUBLE_WITHIN(6e-5, rows[i].t, statistics_t95(rows[i].degrees));
    }
    TEST_ASSERT_TRUE(isinf(statistics_t95(0)));
}

/* By counting all arrangements, in Python; 0.1 and 0.00794 are also in printed tables. */
static void test_mann_whitney(void) {
    static const struct {
        double a[6], b[6];
        size_t n_a, n_b;
        double p;
    } rows[] = {
        {{1, 2, 3}, {4, 5, 6}, 3, 3, 0.1},
        {{4, 5, 6}, {1, 2, 3}, 3, 3, 0.1},
        {{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}, 5, 5, 2 / 252.0},
        {{1, 2, 2, 3}, {2, 3, 4, 4, 5}, 4, 5, 0.0873015873015873},
        {{1, 3, 5}, {2, 4, 6}, 3, 3, 0.7},
        {{1, 1}, {1, 1}, 2, 2, 1},
        {{1}, {2}, 1, 1, 1},
        {{1}, {0}, 1, 0, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        near(rows[i].p, statistics_mann_whitney(rows[i].a, rows[i].n_a, rows[i].b, rows[i].n_b));
    }
}

static void test_mann_whitney_of_many(void) {
    double a[12], b[12], same[12];
    for (int i = 0; i < 12; i++) {
        a[i] = i + 1;
        b[i] = i + 5.5;
        same[i] = 3;
    }
    near(0.012022825407617429, statistics_mann_whitney(a, 12, b, 12));
    near(1, statistics_mann_whitney(same, 12, same, 12));
}

/* As Prometheus answers histogram_quantile. */
static void test_buckets(void) {
    static const struct bucket buckets[] = {{0.1, 10}, {0.5, 30}, {1, 40}, {INFINITY, 50}};
    static const double rows[][2] = {{0, 0},      {0.1, 0.05}, {0.2, 0.1}, {0.4, 0.3},
                                     {0.7, 0.75}, {0.8, 1},    {0.99, 1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        near(rows[i][1], statistics_bucket_quantile(buckets, 4, rows[i][0]));
    }
    static const struct bucket empty[] = {{1, 0}, {INFINITY, 0}};
    TEST_ASSERT_TRUE(isnan(statistics_bucket_quantile(empty, 2, 0.5)));
    TEST_ASSERT_TRUE(isnan(statistics_bucket_quantile(empty, 0, 0.5)));
    static const struct bucket gap[] = {{1, 0}, {2, 0}, {3, 5}, {INFINITY, 5}};
    near(2.5, statistics_bucket_quantile(gap, 4, 0.5));
    static const struct bucket negative[] = {{-1, 5}, {2, 5}, {INFINITY, 5}};
    near(-1, statistics_bucket_quantile(negative, 3, 0.5));
}

static const double wanted[] = {0, 0.5, 0.9, 0.95, 0.99, 1};

/* Of ascending values, interpolated between neighbours as numpy does by default. */
static double exact_quantile(const double *sorted, size_t n, double q) {
    double place = q * (double)(n - 1);
    size_t below = (size_t)place;
    if (below + 1 >= n) {
        return sorted[n - 1];
    }
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

static void check_quantiles(const double *values, size_t n, double max_rank_error) {
    struct quantiles quantiles = {0};
    double *sorted CLEANUP_FREE = calloc(n, sizeof(*sorted));
    for (size_t i = 0; i < n; i++) {
        quantiles_add(&quantiles, values[i]);
        sorted[i] = values[i];
    }
    statistics_sort(sorted, n);
    size_t n_kept;
    double weight;
    struct weighted *kept CLEANUP_FREE = quantiles_sorted(&quantiles, &n_kept, &weight);
    TEST_ASSERT_DOUBLE_WITHIN(1e-9, (double)n, weight);
    TEST_ASSERT_LESS_OR_EQUAL(16 * QUANTILES_EXACT, n_kept);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        double low = wanted[i] - max_rank_error, high = wanted[i] + max_rank_error;
        double got = weighted_quantile(kept, n_kept, weight, wanted[i]);
        TEST_ASSERT_TRUE(got >= exact_quantile(sorted, n, low < 0 ? 0 : low) - 1e-9);
        TEST_ASSERT_TRUE(got <= exact_quantile(sorted, n, high > 1 ? 1 : high) + 1e-9);
    }
    quantiles_finish(&quantiles);
}

/* Python: statistics.quantiles(v, n=…, method="inclusive"). */
static void test_quantiles_as_python_has_them(void) {
    static const double values[] = {3.5, 1.25, 9, 7.75, 2, 2, 8.5};
    static const double expected[][2] = {{0, 1.25},     {0.25, 2},  {0.5, 3.5},
                                         {0.75, 8.125}, {0.9, 8.7}, {1, 9}};
    struct quantiles quantiles = {0};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        quantiles_add(&quantiles, values[i]);
    }
    size_t n;
    double weight;
    struct weighted *kept CLEANUP_FREE = quantiles_sorted(&quantiles, &n, &weight);
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        double got = weighted_quantile(kept, n, weight, expected[i][0]);
        TEST_ASSERT_DOUBLE_WITHIN(1e-9, expected[i][1], got);
    }
    quantiles_finish(&quantiles);
}

static void test_quantiles_are_exact_for_few_values(void) {
    double values[QUANTILES_EXACT];
    srand(3);
    for (size_t i = 0; i < QUANTILES_EXACT; i++) {
        values[i] = rand() % 1000 / 7.0;
    }
    for (size_t n = 1; n <= QUANTILES_EXACT; n = n * 3 + 1) {
        check_quantiles(values, n, 0);
    }
    check_quantiles(values, QUANTILES_EXACT, 0);
}

/* In order, in the other order, and at random: within the promise. */
static void test_quantiles_are_close_for_many_values(void) {
    enum { MANY = 1000 * 1000 };
    double *values CLEANUP_FREE = calloc(MANY, sizeof(*values));
    for (int i = 0; i < MANY; i++) {
        values[i] = i;
    }
    check_quantiles(values, MANY, 0.002);
    for (int i = 0; i < MANY; i++) {
        values[i] = MANY - i;
    }
    check_quantiles(values, MANY, 0.002);
    srand(5);
    for (int i = 0; i < MANY; i++) {
        values[i] = rand();
    }
    check_quantiles(values, MANY, 0.002);
}

static void test_quantiles_of_nothing(void) {
    struct quantiles quantiles = {0};
    size_t n;
    double weight;
    TEST_ASSERT_NULL(quantiles_sorted(&quantiles, &n, &weight));
    quantiles_finish(&quantiles);
}

/* Whatever the number of samples: few bins, no sample lost, all in order. */
static void test_timeline_of_any_length(void) {
    for (size_t n = 1; n < 300000; n = n * 3 + 1) {
        struct timeline timeline = {0};
        for (size_t i = 0; i < n; i++) {
            timeline_add(&timeline, (double)i, (double)(i % 7));
        }
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
static void test_timeline_keeps_peaks(void) {
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
