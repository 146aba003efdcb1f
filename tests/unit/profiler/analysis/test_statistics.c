#include "profiler/analysis/statistics.h"

#include <math.h>
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
