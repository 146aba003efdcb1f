#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "profiler/analysis/measure.h"

/* A run whose measure differs by more than this from others of its kind is not to be trusted. */
static const double max_cv = 0.05;

static bool ends_in(const char *text, size_t len, const char *end) {
    size_t n = strlen(end);
    return len >= n && strncmp(text + len - n, end, n) == 0;
}

static struct measure *add_measure(struct measures *measures, const char *name, const char *unit,
                                   enum better better) {
    struct measure *measure = measures_add(measures, name, unit);
    if (measure != NULL) {
        measure->better = better;
    }
    return measure;
}

/* Takes the statistics of a pool of samples. */
static void take_pool(struct measures *measures, struct measure *measure,
                      const struct profile_pool *pool) {
    double weight;
    if (pool->moments.n == 0) {
        return;
    }
    measure->spread = quantiles_sorted(&pool->quantiles, &measure->n_spread, &weight);
    if (measure->spread == NULL) {
        measures->failed = true;
        return;
    }
    measure->n = (double)pool->moments.n;
    measure->mean = pool->moments.mean;
    measure->sd = moments_sd(&pool->moments);
    measure->min = pool->moments.min;
    measure->max = pool->moments.max;
    const struct weighted *spread = measure->spread;
    measure->p50 = weighted_quantile(spread, measure->n_spread, weight, 0.5);
    measure->p90 = weighted_quantile(spread, measure->n_spread, weight, 0.9);
    measure->p95 = weighted_quantile(spread, measure->n_spread, weight, 0.95);
    measure->p99 = weighted_quantile(spread, measure->n_spread, weight, 0.99);
}

/* A column as a measure: gauges by their samples, counters by their rate. */
static void fill_from_column(struct measures *measures, struct measure *measure,
                             const struct profile_target *target, size_t index, bool is_counter) {
    if (measure == NULL) {
        return;
    }
    for (size_t i = 0; i < target->n_runs; i++) {
        const struct profile_column *column = profile_column(&target->runs[i], index);
        double value = column == NULL ? NAN
                       : is_counter   ? profile_rate(column)
                                      : column->moments.mean;
        if (isfinite(value)) {
            measure_add_run(measures, measure, target->runs[i].number, value);
        }
    }
    if (index < target->n_pools && target->pools[index].moments.n > 0) {
        take_pool(measures, measure, &target->pools[index]);
    } else {
        measure_sum_up_runs(measure);
    }
    /* Whole runs know better than windows, which leave out what does not fill one. */
    if (is_counter && measure->n_runs > 0) {
        measure->mean = moments_of(measure->runs, measure->n_runs).mean;
    }
}

/* By how much a counter grew in each run. */
static void add_growth(struct measures *measures, const struct profile_target *target, size_t index,
                       const char *name, const char *unit) {
    struct measure *measure = measures_add(measures, name, unit);
    for (size_t i = 0; measure != NULL && i < target->n_runs; i++) {
        const struct profile_column *column = profile_column(&target->runs[i], index);
        if (column != NULL) {
            measure_add_run(measures, measure, target->runs[i].number, column->grown);
        }
    }
    if (measure != NULL) {
        measure_sum_up_runs(measure);
    }
}

static void add_app_counter(struct measures *measures, const struct profile *profile,
                            const struct profile_target *target, size_t index) {
    const struct record_series *series = profile_series(profile, index);
    const char *name = record_short_key(series->key);
    size_t bare = strcspn(name, "{");
    add_growth(measures, target, index, name, series->unit);
    if (!ends_in(name, bare, "_total")) {
        return;
    }
    /* More frames are better; of other things nobody knows. */
    bool is_rate = profile_find_gauge(profile, series) >= 0;
    bool is_frames = (int)index == profile_frame_counter(profile);
    struct buf rate CLEANUP_BUF = {0};
    buf_printf(&rate, "%.*s%s%s", (int)(bare - strlen("_total")), name,
               is_rate ? "" : "_per_second", name + bare);
    struct measure *measure = add_measure(measures, buf_str(&rate), "/s",
                                          is_rate || is_frames ? BETTER_HIGHER : BETTER_NEITHER);
    fill_from_column(measures, measure, target, index, true);
}

static enum better better_of(const struct record_series *series) {
    static const char whole_machine[] = "system.";
    size_t len = strlen(series->name);
    if (strncmp(series->name, whole_machine, strlen(whole_machine)) == 0) {
        return BETTER_NEITHER;
    }
    static const char *const lower[] = {"_seconds", "_bytes", "_joules",  "_watts",
                                        ".bytes",   ".watts", ".celsius", "throttled.ratio"};
    for (size_t i = 0; i < ARRAY_LEN(lower); i++) {
        if (ends_in(series->name, len, lower[i])) {
            return BETTER_LOWER;
        }
    }
    return BETTER_NEITHER;
}

static void add_series(struct measures *measures, const struct profile *profile,
                       const struct profile_target *target, size_t index) {
    const struct record_series *series = profile_series(profile, index);
    const char *name = record_short_key(series->key);
    bool is_app = record_key_is_app(series->key);
    if (series->type == RECORD_GAUGE) {
        if (is_app ? profile_find_counter(profile, series) < 0
                   : measures_find(measures, name) == NULL) {
            struct measure *measure = add_measure(measures, name, series->unit, better_of(series));
            fill_from_column(measures, measure, target, index, false);
        }
    } else if (series->type == RECORD_COUNTER && is_app) {
        add_app_counter(measures, profile, target, index);
    } else if (series->type == RECORD_COUNTER && measures_find(measures, name) == NULL) {
        add_growth(measures, target, index, name, series->unit);
    }
}

/* A second of CPU time per second is 100 %. */
static void scale_to_percent(struct measure *measure) {
    for (size_t i = 0; i < measure->n_runs; i++) {
        measure->runs[i] *= 100;
    }
    for (size_t i = 0; i < measure->n_spread; i++) {
        measure->spread[i].value *= 100;
    }
    for (size_t i = 0; i < N_MEASURE_STATS; i++) {
        double value = 100 * measure_stat(measure, &measure_stats[i]);
        memcpy((char *)measure + measure_stats[i].offset, &value, sizeof(value));
    }
}

static int compare_names(const void *a, const void *b) {
    const struct measure *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Drops what no run has, and marks what the runs do not agree on. */
static void finish(struct measures *measures) {
    size_t kept = 0;
    for (size_t i = 0; i < measures->n; i++) {
        struct measure *measure = &measures->items[i];
        if (measure->n > 0) {
            struct moments moments = moments_of(measure->runs, measure->n_runs);
            measure->unsettled = measure->better != BETTER_NEITHER && moments.n >= 3 &&
                                 moments_cv(&moments) > max_cv;
            measures->items[kept++] = *measure;
        } else {
            measure_finish(measure);
        }
    }
    measures->n = kept;
    if (kept > 0) {
        qsort(measures->items, kept, sizeof(*measures->items), compare_names);
    }
}

int measures_make(const struct profile *profile, const struct profile_target *target,
                  struct measures *ret_measures, struct error *err) {
    struct measures measures CLEANUP_MEASURES = {0};
    measures_add_scalars(&measures, profile, target);
    struct measure *cpu = add_measure(&measures, "cpu.percent", "%", BETTER_LOWER);
    fill_from_column(&measures, cpu, target, DERIVED_CPU, true);
    if (!measures.failed) {
        scale_to_percent(cpu);
    }
    for (size_t i = N_DERIVED; i < profile_n_columns(profile); i++) {
        add_series(&measures, profile, target, i);
    }
    measures_add_histograms(&measures, profile, target);
    if (measures.failed) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    finish(&measures);
    *ret_measures = measures;
    measures = (struct measures){0};
    return 0;
}
