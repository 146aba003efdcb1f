#pragma once

#include <stddef.h>

/* Count, mean, deviation and range of a stream of values. A zeroed struct is empty. */
struct moments {
    size_t n;
    double mean;
    double m2; /* sum of squared distances from the mean */
    double min, max;
};

void moments_add(struct moments *moments, double value);

/* The moments of an array. */
struct moments moments_of(const double *values, size_t n);

/* Standard deviation of the sample (n - 1); 0 for fewer than two values. */
double moments_sd(const struct moments *moments);

/* Coefficient of variation: the deviation relative to the mean; 0 if the mean is 0. */
double moments_cv(const struct moments *moments);

/* Half the width of the 95 % confidence interval of the mean, by Student's t; `n` at least 2. */
double moments_ci95(const struct moments *moments);

/* The two-sided 95 % quantile of Student's t. */
double statistics_t95(size_t degrees_of_freedom);

/* The two-sided probability that two samples of the same distribution differ in rank as much as
 * these (Mann-Whitney U). Exact for up to 20 values, also with ties; for more, the normal
 * approximation with correction for ties and continuity. 1 if a sample is empty. */
double statistics_mann_whitney(const double *a, size_t n_a, const double *b, size_t n_b);

/* One bucket of a cumulative histogram. */
struct bucket {
    double le;    /* upper bound; the last one is infinite */
    double count; /* of all values up to it */
};

/* The quantile of ascending buckets, interpolated as by PromQL's histogram_quantile; NaN without
 * values. A quantile in the last bucket is reported as the highest finite bound. */
double statistics_bucket_quantile(const struct bucket *buckets, size_t n, double q);

/* Sorts ascending. */
void statistics_sort(double *values, size_t n);

/* The distribution of a stream of values in bounded memory. It is exact for up to QUANTILES_EXACT
 * values; then a full buffer is sorted and every other value moves to the next level, where it
 * counts twice. For a million values the rank of a quantile is off by at most 0.2 %. A zeroed
 * struct is empty. */
struct quantiles {
    struct quantiles_level *levels;
    size_t n_levels;
};

enum { QUANTILES_EXACT = 4096 };

void quantiles_add(struct quantiles *quantiles, double value);

/* A value and its weight. */
struct weighted {
    double value;
    double weight;
};

/* The values ascending and the sum of their weights; NULL without values. The caller frees it. */
struct weighted *quantiles_sorted(const struct quantiles *quantiles, size_t *ret_n,
                                  double *ret_weight);

/* The quantile `q` of the result of quantiles_sorted; interpolated if all weights are one. */
double weighted_quantile(const struct weighted *sorted, size_t n, double weight, double q);

/* Frees it and leaves it empty. */
void quantiles_finish(struct quantiles *quantiles);

/* A value over time in bounded memory: when TIMELINE_BINS are full, neighbours merge. */
struct timeline {
    struct timeline_bin *bins;
    size_t n_bins, cap_bins;
    size_t per_bin; /* samples per bin */
};

struct timeline_bin {
    double t;    /* of its last sample */
    double last; /* for counters */
    double sum;
    double min, max;
    size_t n;
};

enum { TIMELINE_BINS = 512 };

/* Adds a value; `t` never decreases. */
void timeline_add(struct timeline *timeline, double t, double value);

/* Frees it and leaves it empty. */
void timeline_finish(struct timeline *timeline);
