#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "profiler/analysis/histogram_key.h"
#include "profiler/analysis/measure.h"

/* Measures made of the application's histograms. */

/* One histogram: the buckets of one name and one set of labels but `le`. */
struct histogram {
    char *key; /* name and the other labels */
    const char *unit;
    struct {
        double le;
        size_t column;
    } * buckets;
    size_t n_buckets;
};

struct histograms {
    struct histogram *items;
    size_t n;
};

static void histograms_finish(struct histograms *histograms) {
    for (size_t i = 0; i < histograms->n; i++) {
        free(histograms->items[i].key);
        free(histograms->items[i].buckets);
    }
    free(histograms->items);
}

static struct histogram *get_histogram(struct histograms *histograms, const char *key,
                                       const char *unit) {
    for (size_t i = 0; i < histograms->n; i++) {
        if (strcmp(histograms->items[i].key, key) == 0) {
            return &histograms->items[i];
        }
    }
    struct histogram *items = reallocarray(histograms->items, histograms->n + 1, sizeof(*items));
    if (items == NULL) {
        return NULL;
    }
    histograms->items = items;
    items[histograms->n] = (struct histogram){.key = strdup(key), .unit = unit};
    return items[histograms->n].key != NULL ? &items[histograms->n++] : NULL;
}

/* Keeps the bounds ascending. */
static bool add_bucket(struct histogram *histogram, double le, size_t column) {
    __typeof__(histogram->buckets) buckets =
        reallocarray(histogram->buckets, histogram->n_buckets + 1, sizeof(*buckets));
    if (buckets == NULL) {
        return false;
    }
    histogram->buckets = buckets;
    size_t i = histogram->n_buckets++;
    for (; i > 0 && buckets[i - 1].le > le; i--) {
        buckets[i] = buckets[i - 1];
    }
    buckets[i].le = le;
    buckets[i].column = column;
    return true;
}

static bool find_histograms(const struct profile *profile, struct histograms *ret) {
    for (size_t i = N_DERIVED; i < profile_n_columns(profile); i++) {
        const struct record_series *series = profile_series(profile, i);
        struct buf key CLEANUP_BUF = {0};
        double le;
        if (series->type != RECORD_BUCKET || histogram_key_of(series, &key, &le) < 0) {
            continue;
        }
        struct histogram *histogram = get_histogram(ret, buf_str(&key), series->unit);
        if (histogram == NULL || !add_bucket(histogram, le, i)) {
            return false;
        }
    }
    return true;
}

static double grown(const struct profile_run *run, int index) {
    const struct profile_column *column = index >= 0 ? profile_column(run, (size_t)index) : NULL;
    return column != NULL ? column->grown : NAN;
}

/* The column `name_sum{labels}` of a histogram `name{labels}`. */
static int find_part(const struct profile *profile, const char *key, const char *part) {
    struct buf name CLEANUP_BUF = {0};
    size_t bare = strcspn(key, "{");
    buf_printf(&name, "%.*s%s%s", (int)bare, key, part, key + bare);
    return profile_find(profile, buf_str(&name));
}

static void set_quantiles(struct measure *measure, const struct bucket *buckets, size_t n) {
    measure->n = buckets[n - 1].count;
    measure->p50 = statistics_bucket_quantile(buckets, n, 0.5);
    measure->p90 = statistics_bucket_quantile(buckets, n, 0.9);
    measure->p95 = statistics_bucket_quantile(buckets, n, 0.95);
    measure->p99 = statistics_bucket_quantile(buckets, n, 0.99);
    /* The bound above all of them, where there is one. */
    size_t top = 0;
    while (top < n - 1 && buckets[top].count < buckets[n - 1].count) {
        top++;
    }
    measure->max = isfinite(buckets[top].le) ? buckets[top].le : NAN;
}

/* For the plot: what is in each bucket that has a bound. */
static void set_spread(struct measures *measures, struct measure *measure,
                       const struct bucket *buckets, size_t n) {
    measure->spread = calloc(n, sizeof(*measure->spread));
    measures->failed = measures->failed || measure->spread == NULL;
    measure->bucketed = true;
    for (size_t i = 0; measure->spread != NULL && i < n; i++) {
        double count = buckets[i].count - (i > 0 ? buckets[i - 1].count : 0);
        if (isfinite(buckets[i].le)) {
            measure->spread[measure->n_spread++] = (struct weighted){buckets[i].le, count};
        }
    }
}

static void add_runs(struct measures *measures, struct measure *measure,
                     const struct profile *profile, const struct profile_target *target,
                     const struct histogram *histogram) {
    int sum_at = find_part(profile, histogram->key, "_sum");
    int last = (int)histogram->buckets[histogram->n_buckets - 1].column;
    double sum = 0, count = 0;
    for (size_t i = 0; i < target->n_runs; i++) {
        double run_sum = grown(&target->runs[i], sum_at), run_count = grown(&target->runs[i], last);
        if (run_count > 0 && !isnan(run_sum)) {
            measure_add_run(measures, measure, target->runs[i].number, run_sum / run_count);
            sum += run_sum;
            count += run_count;
        }
    }
    measure->mean = count > 0 ? sum / count : NAN;
}

static void add_histogram(struct measures *measures, const struct profile *profile,
                          const struct profile_target *target, const struct histogram *histogram) {
    size_t n = histogram->n_buckets;
    struct bucket *buckets CLEANUP_FREE = calloc(n, sizeof(*buckets));
    struct measure *measure =
        buckets != NULL ? measures_add(measures, record_short_key(histogram->key), histogram->unit)
                        : NULL;
    if (measure == NULL) {
        measures->failed = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        buckets[i].le = histogram->buckets[i].le;
        for (size_t j = 0; j < target->n_runs; j++) {
            double count = grown(&target->runs[j], (int)histogram->buckets[i].column);
            buckets[i].count += isnan(count) ? 0 : count;
        }
    }
    measure->better = BETTER_LOWER;
    if (buckets[n - 1].count > 0) {
        set_quantiles(measure, buckets, n);
        set_spread(measures, measure, buckets, n);
        add_runs(measures, measure, profile, target, histogram);
    }
}

void measures_add_histograms(struct measures *measures, const struct profile *profile,
                             const struct profile_target *target) {
    struct histograms histograms CLEANUP(histograms_finish) = {0};
    if (!find_histograms(profile, &histograms)) {
        measures->failed = true;
        return;
    }
    for (size_t i = 0; i < histograms.n; i++) {
        add_histogram(measures, profile, target, &histograms.items[i]);
    }
}
