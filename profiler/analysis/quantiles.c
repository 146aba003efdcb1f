#include "profiler/analysis/quantiles.h"

#include <math.h>
#include <stdlib.h>

#include "profiler/analysis/statistics.h"

struct quantiles_level {
    double *values;
    size_t n, cap;
    bool odd; /* which half goes on the next time: alternating keeps the errors from adding up */
};

static bool grow(struct quantiles_level *level) {
    size_t cap = level->cap > 0 ? 2 * level->cap : 64;
    double *values = reallocarray(level->values, cap, sizeof(*values));
    if (values == NULL) {
        return false;
    }
    level->values = values;
    level->cap = cap;
    return true;
}

static bool add_level(struct quantiles *quantiles) {
    struct quantiles_level *levels =
        reallocarray(quantiles->levels, quantiles->n_levels + 1, sizeof(*levels));
    if (levels == NULL) {
        return false;
    }
    quantiles->levels = levels;
    levels[quantiles->n_levels++] = (struct quantiles_level){0};
    return true;
}

static bool put(struct quantiles *quantiles, size_t depth, double value) {
    if (depth == quantiles->n_levels && !add_level(quantiles)) {
        return false;
    }
    struct quantiles_level *level = &quantiles->levels[depth];
    if (level->n == level->cap && !grow(level)) {
        return false;
    }
    level->values[level->n++] = value;
    return true;
}

/* Halves full levels, the lowest first. The level above has room for the half, as it was left with
 * less than a full one. */
static bool compact(struct quantiles *quantiles, size_t depth) {
    for (; quantiles->levels[depth].n >= QUANTILES_EXACT; depth++) {
        struct quantiles_level *level = &quantiles->levels[depth];
        statistics_sort(level->values, level->n);
        size_t n = level->n, from = level->odd;
        level->odd = !level->odd;
        level->n = 0;
        for (size_t i = from; i < n; i += 2) {
            /* `levels` may move with a level that is added. */
            if (!put(quantiles, depth + 1, quantiles->levels[depth].values[i])) {
                return false;
            }
        }
    }
    return true;
}

void quantiles_add(struct quantiles *quantiles, double value) {
    if (quantiles->failed) {
        return;
    }
    bool full = quantiles->n_levels > 0 && quantiles->levels[0].n == QUANTILES_EXACT;
    quantiles->failed = (full && !compact(quantiles, 0)) || !put(quantiles, 0, value);
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
    struct weighted *sorted = n > 0 ? calloc(n, sizeof(*sorted)) : NULL;
    if (sorted == NULL) {
        return NULL;
    }
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
