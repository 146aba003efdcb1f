#include "profiler/analysis/statistics.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

/* ---- moments (Welford) ---- */

void moments_add(struct moments *moments, double value) {
    moments->min = moments->n == 0 || value < moments->min ? value : moments->min;
    moments->max = moments->n == 0 || value > moments->max ? value : moments->max;
    moments->n++;
    double distance = value - moments->mean;
    moments->mean += distance / (double)moments->n;
    moments->m2 += distance * (value - moments->mean);
}

struct moments moments_of(const double *values, size_t n) {
    struct moments moments = {0};
    for (size_t i = 0; i < n; i++) {
        moments_add(&moments, values[i]);
    }
    return moments;
}

double moments_sd(const struct moments *moments) {
    return moments->n < 2 ? 0 : sqrt(moments->m2 / (double)(moments->n - 1));
}

double moments_cv(const struct moments *moments) {
    return moments->mean == 0 ? 0 : moments_sd(moments) / fabs(moments->mean);
}

double moments_ci95(const struct moments *moments) {
    return statistics_t95(moments->n - 1) * moments_sd(moments) / sqrt((double)moments->n);
}

/* ---- Student's t ---- */

double statistics_t95(size_t degrees_of_freedom) {
    static const double table[] = {
        12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004,
        2.262157,  2.228139, 2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905,
        2.109816,  2.100922, 2.093024, 2.085963, 2.079614, 2.073873, 2.068658, 2.063899,
        2.059539,  2.055529, 2.051831, 2.048407, 2.045230, 2.042272,
    };
    if (degrees_of_freedom == 0) {
        return INFINITY;
    }
    if (degrees_of_freedom <= ARRAY_LEN(table)) {
        return table[degrees_of_freedom - 1];
    }
    /* The Cornish-Fisher expansion around the normal quantile, exact to six digits here. */
    const double z = 1.959963985, n = (double)degrees_of_freedom;
    const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

/* ---- order ---- */

static int compare_doubles(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void statistics_sort(double *values, size_t n) {
    if (n > 0) {
        qsort(values, n, sizeof(*values), compare_doubles);
    }
}

double statistics_bucket_quantile(const struct bucket *buckets, size_t n, double q) {
    if (n < 2 || !(buckets[n - 1].count > 0)) {
        return NAN;
    }
    double rank = q * buckets[n - 1].count;
    size_t i = 0;
    while (i < n - 1 && buckets[i].count < rank) {
        i++;
    }
    if (i == n - 1) {
        return buckets[n - 2].le;
    }
    if (i == 0 && buckets[0].le <= 0) {
        return buckets[0].le;
    }
    double below = i > 0 ? buckets[i - 1].count : 0;
    double from = i > 0 ? buckets[i - 1].le : 0;
    double in = buckets[i].count - below;
    return in > 0 ? from + (buckets[i].le - from) * (rank - below) / in : buckets[i].le;
}

/* ---- Mann-Whitney U ---- */

enum { EXACT_MAX = 20 };

/* Twice U of the first sample: 2 for each pair that it wins, 1 for each tie. */
static size_t twice_u(const double *a, size_t n_a, const double *b, size_t n_b) {
    size_t u = 0;
    for (size_t i = 0; i < n_a; i++) {
        for (size_t j = 0; j < n_b; j++) {
            u += a[i] > b[j] ? 2 : a[i] == b[j];
        }
    }
    return u;
}

/* Every choice of the first sample from the pooled values is equally likely. Returns the share of
 * choices that are at least as far from the middle as the observed one. 20 values have at most
 * 184756 choices. */
static double exact(const double *pooled, size_t n, size_t n_a, size_t seen) {
    size_t middle = n_a * (n - n_a); /* of twice U */
    size_t far = seen > middle ? seen - middle : middle - seen;
    size_t as_far = 0, all = 0;
    for (uint32_t chosen = (1U << n_a) - 1; chosen < 1U << n;) {
        double a[EXACT_MAX], b[EXACT_MAX];
        size_t in_a = 0, in_b = 0;
        for (size_t i = 0; i < n; i++) {
            if (chosen >> i & 1) {
                a[in_a++] = pooled[i];
            } else {
                b[in_b++] = pooled[i];
            }
        }
        size_t u = twice_u(a, in_a, b, in_b);
        as_far += (u > middle ? u - middle : middle - u) >= far;
        all++;
        /* The next larger number with the same number of bits set. */
        uint32_t lowest = chosen & -chosen;
        uint32_t ripple = chosen + lowest;
        chosen = ripple | ((chosen ^ ripple) >> 2) / lowest;
    }
    return (double)as_far / (double)all;
}

static double approximate(const double *sorted, size_t n, size_t n_a, double u) {
    double ties = 0;
    for (size_t i = 0; i < n;) {
        size_t same = i + 1;
        while (same < n && sorted[same] == sorted[i]) {
            same++;
        }
        double t = (double)(same - i);
        ties += t * t * t - t;
        i = same;
    }
    double pairs = (double)n_a * (double)(n - n_a), all = (double)n;
    double variance = pairs / 12 * (all + 1 - ties / (all * (all - 1)));
    double far = fabs(u - pairs / 2) - 0.5;
    return variance <= 0 || far <= 0 ? 1 : erfc(far / sqrt(2 * variance));
}

double statistics_mann_whitney(const double *a, size_t n_a, const double *b, size_t n_b) {
    size_t n = n_a + n_b;
    if (n_a == 0 || n_b == 0) {
        return 1;
    }
    double *pooled CLEANUP_FREE = mem_alloc(n * sizeof(*pooled));
    for (size_t i = 0; i < n; i++) {
        pooled[i] = i < n_a ? a[i] : b[i - n_a];
    }
    statistics_sort(pooled, n);
    size_t seen = twice_u(a, n_a, b, n_b);
    return n <= EXACT_MAX ? exact(pooled, n, n_a, seen)
                          : approximate(pooled, n, n_a, (double)seen / 2);
}

/* ---- quantiles of a stream ---- */

struct quantiles_level {
    double *values;
    size_t n, cap;
    bool odd; /* which half moves up next; alternating keeps errors from adding up */
};

static void put(struct quantiles *quantiles, size_t depth, double value) {
    if (depth == quantiles->n_levels) {
        quantiles->levels = mem_resize(quantiles->levels, depth + 1, sizeof(*quantiles->levels));
        quantiles->levels[quantiles->n_levels++] = (struct quantiles_level){0};
    }
    struct quantiles_level *level = &quantiles->levels[depth];
    ARRAY_GROW(&level->values, &level->cap, level->n + 1);
    level->values[level->n++] = value;
}

/* Halves full levels, the lowest first. */
static void compact(struct quantiles *quantiles, size_t depth) {
    for (; quantiles->levels[depth].n >= QUANTILES_EXACT; depth++) {
        struct quantiles_level *level = &quantiles->levels[depth];
        statistics_sort(level->values, level->n);
        size_t n = level->n, from = level->odd;
        level->odd = !level->odd;
        level->n = 0;
        for (size_t i = from; i < n; i += 2) {
            /* put() may move `levels`. */
            put(quantiles, depth + 1, quantiles->levels[depth].values[i]);
        }
    }
}

void quantiles_add(struct quantiles *quantiles, double value) {
    if (quantiles->n_levels > 0 && quantiles->levels[0].n == QUANTILES_EXACT) {
        compact(quantiles, 0);
    }
    put(quantiles, 0, value);
}

static int compare_weighted(const void *a, const void *b) {
    const struct weighted *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

struct weighted *quantiles_sorted(const struct quantiles *quantiles, size_t *ret_n,
                                  double *ret_weight) {
    size_t n = 0;
    for (size_t i = 0; i < quantiles->n_levels; i++) {
        n += quantiles->levels[i].n;
    }
    if (n == 0) {
        return NULL;
    }
    struct weighted *sorted = mem_alloc(n * sizeof(*sorted));
    size_t at = 0;
    double sum = 0;
    for (size_t i = 0; i < quantiles->n_levels; i++) {
        double weight = ldexp(1, (int)i);
        for (size_t j = 0; j < quantiles->levels[i].n; j++) {
            sorted[at++] = (struct weighted){quantiles->levels[i].values[j], weight};
            sum += weight;
        }
    }
    qsort(sorted, n, sizeof(*sorted), compare_weighted);
    *ret_n = n;
    *ret_weight = sum;
    return sorted;
}

double weighted_quantile(const struct weighted *sorted, size_t n, double weight, double q) {
    double place = q * (weight - 1), passed = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        passed += sorted[i].weight;
        if (passed > place) {
            double share = place - (passed - 1); /* above 0 between this value and the next */
            double step = sorted[i + 1].value - sorted[i].value;
            return sorted[i].value + (share > 0 ? share * step : 0);
        }
    }
    return sorted[n - 1].value;
}

void quantiles_finish(struct quantiles *quantiles) {
    for (size_t i = 0; i < quantiles->n_levels; i++) {
        free(quantiles->levels[i].values);
    }
    free(quantiles->levels);
    *quantiles = (struct quantiles){0};
}

/* ---- time lines ---- */

static struct timeline_bin merged(const struct timeline_bin *a, const struct timeline_bin *b) {
    return (struct timeline_bin){
        .t = b->t,
        .last = b->last,
        .sum = a->sum + b->sum,
        .min = fmin(a->min, b->min),
        .max = fmax(a->max, b->max),
        .n = a->n + b->n,
    };
}

static void halve(struct timeline *timeline) {
    for (size_t i = 0; i < TIMELINE_BINS / 2; i++) {
        timeline->bins[i] = merged(&timeline->bins[2 * i], &timeline->bins[2 * i + 1]);
    }
    timeline->n_bins = TIMELINE_BINS / 2;
    timeline->per_bin *= 2;
}

void timeline_add(struct timeline *timeline, double t, double value) {
    struct timeline_bin bin = {t, value, value, value, value, 1};
    timeline->per_bin = timeline->per_bin > 0 ? timeline->per_bin : 1;
    size_t n = timeline->n_bins;
    if (n > 0 && timeline->bins[n - 1].n < timeline->per_bin) {
        timeline->bins[n - 1] = merged(&timeline->bins[n - 1], &bin);
        return;
    }
    if (timeline->n_bins == TIMELINE_BINS) {
        halve(timeline);
    }
    ARRAY_GROW(&timeline->bins, &timeline->cap_bins, timeline->n_bins + 1);
    timeline->bins[timeline->n_bins++] = bin;
}

void timeline_finish(struct timeline *timeline) {
    free(timeline->bins);
    *timeline = (struct timeline){0};
}
