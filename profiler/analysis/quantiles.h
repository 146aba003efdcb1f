#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The distribution of values that come one by one, in bounded memory: exact up to QUANTILES_EXACT
 * of them; beyond, a full buffer is sorted and every other value goes on to the next level, where
 * it counts twice. The rank of a quantile is then off by 0.2 % at the most for a million values. A
 * zeroed struct is empty. */
struct quantiles {
    struct quantiles_level *levels;
    size_t n_levels;
    bool failed; /* memory was out; check once at the end */
};

enum { QUANTILES_EXACT = 4096 };

void quantiles_add(struct quantiles *quantiles, double value);

/* A value and how many it stands for. */
struct weighted {
    double value;
    double weight;
};

/* What is kept, ascending, with the sum of the weights; NULL without values or when memory is out.
 * The caller frees it. */
struct weighted *quantiles_sorted(const struct quantiles *quantiles, size_t *ret_n,
                                  double *ret_weight);

/* The quantile `q` of what quantiles_sorted gave; interpolated where all weights are one. */
double weighted_quantile(const struct weighted *sorted, size_t n, double weight, double q);

/* Frees it and leaves it empty. */
void quantiles_finish(struct quantiles *quantiles);
