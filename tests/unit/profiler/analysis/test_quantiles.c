#include "profiler/analysis/quantiles.h"

#include <stdlib.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "profiler/analysis/statistics.h"

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

static void check(const double *values, size_t n, double max_rank_error) {
    struct quantiles quantiles = {0};
    double *sorted CLEANUP_FREE = calloc(n, sizeof(*sorted));
    for (size_t i = 0; i < n; i++) {
        quantiles_add(&quantiles, values[i]);
        sorted[i] = values[i];
    }
    TEST_ASSERT_FALSE(quantiles.failed);
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
static void test_as_python_has_them(void) {
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

static void test_exact_while_few(void) {
    double values[QUANTILES_EXACT];
    srand(3);
    for (size_t i = 0; i < QUANTILES_EXACT; i++) {
        values[i] = rand() % 1000 / 7.0;
    }
    for (size_t n = 1; n <= QUANTILES_EXACT; n = n * 3 + 1) {
        check(values, n, 0);
    }
    check(values, QUANTILES_EXACT, 0);
}

/* In order, in the other order, and at random: within the promise. */
static void test_close_when_many(void) {
    enum { MANY = 1000 * 1000 };
    double *values CLEANUP_FREE = calloc(MANY, sizeof(*values));
    for (int i = 0; i < MANY; i++) {
        values[i] = i;
    }
    check(values, MANY, 0.002);
    for (int i = 0; i < MANY; i++) {
        values[i] = MANY - i;
    }
    check(values, MANY, 0.002);
    srand(5);
    for (int i = 0; i < MANY; i++) {
        values[i] = rand();
    }
    check(values, MANY, 0.002);
}

static void test_empty(void) {
    struct quantiles quantiles = {0};
    size_t n;
    double weight;
    TEST_ASSERT_NULL(quantiles_sorted(&quantiles, &n, &weight));
    quantiles_finish(&quantiles);
}
