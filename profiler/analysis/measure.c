#include "profiler/analysis/measure.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/core/memory.h"

const struct measure_stat measure_stats[] = {
    {"mean", offsetof(struct measure, mean)}, {"sd", offsetof(struct measure, sd)},
    {"min", offsetof(struct measure, min)},   {"p50", offsetof(struct measure, p50)},
    {"p90", offsetof(struct measure, p90)},   {"p95", offsetof(struct measure, p95)},
    {"p99", offsetof(struct measure, p99)},   {"max", offsetof(struct measure, max)},
};
_Static_assert(ARRAY_LEN(measure_stats) == N_MEASURE_STATS, "one of them is missing");

double measure_stat(const struct measure *measure, const struct measure_stat *stat) {
    double value;
    memcpy(&value, (const char *)measure + stat->offset, sizeof(value));
    return value;
}

static void measure_finish(struct measure *measure) {
    free(measure->name);
    free(measure->unit);
    free(measure->runs);
    free(measure->run_numbers);
    free(measure->spread);
}

void measures_finish(struct measures *measures) {
    for (size_t i = 0; i < measures->n; i++) {
        measure_finish(&measures->items[i]);
    }
    free(measures->items);
    *measures = (struct measures){0};
}

struct measure *measures_add(struct measures *measures, const char *name, const char *unit) {
    ARRAY_GROW(&measures->items, &measures->cap, measures->n + 1);
    struct measure *measure = &measures->items[measures->n++];
    *measure = (struct measure){
        .name = mem_strdup(name),
        .unit = mem_strdup(unit),
        .mean = NAN,
        .sd = NAN,
        .min = NAN,
        .p50 = NAN,
        .p90 = NAN,
        .p95 = NAN,
        .p99 = NAN,
        .max = NAN,
    };
    return measure;
}

void measure_add_run(struct measure *measure, unsigned number, double value) {
    size_t n = measure->n_runs++;
    measure->runs = mem_resize(measure->runs, n + 1, sizeof(*measure->runs));
    measure->run_numbers = mem_resize(measure->run_numbers, n + 1, sizeof(*measure->run_numbers));
    measure->runs[n] = value;
    measure->run_numbers[n] = number;
}

void measure_sum_up_runs(struct measure *measure) {
    struct moments moments = moments_of(measure->runs, measure->n_runs);
    measure->n = (double)moments.n;
    if (moments.n == 0) {
        return;
    }
    measure->mean = moments.mean;
    measure->sd = moments_sd(&moments);
    measure->min = moments.min;
    measure->max = moments.max;
}

const struct measure *measures_find(const struct measures *measures, const char *name) {
    for (size_t i = 0; i < measures->n; i++) {
        if (strcmp(measures->items[i].name, name) == 0) {
            return &measures->items[i];
        }
    }
    return NULL;
}

/* ---- names in gates ---- */

/* Whether the rest of a name is only a unit. */
static bool is_unit(const char *rest, size_t len) {
    static const char *const units[] = {"bytes", "celsius", "joules", "percent",
                                        "ratio", "seconds", "watts"};
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (len == strlen(units[i]) + 1 && (rest[0] == '_' || rest[0] == '.') &&
            strncmp(rest + 1, units[i], len - 1) == 0) {
            return true;
        }
    }
    return len == 0;
}

static bool is_name(const struct measure *measure, const char *text, size_t len) {
    const char *short_text = record_short_key(text);
    size_t prefix = (size_t)(short_text - text);
    if (len > prefix) {
        text = short_text;
        len -= prefix;
    }
    if (strlen(measure->name) == len && strncmp(measure->name, text, len) == 0) {
        return true;
    }
    size_t bare = strcspn(measure->name, "{");
    return len > 0 && len <= bare && strncmp(measure->name, text, len) == 0 &&
           is_unit(measure->name + len, bare - len);
}

bool measure_matches(const struct measure *measure, const char *text,
                     const struct measure_stat **ret_stat) {
    const char *dot = strrchr(text, '.');
    for (size_t i = 0; dot != NULL && i < N_MEASURE_STATS; i++) {
        if (strcmp(measure_stats[i].name, dot + 1) == 0 &&
            is_name(measure, text, (size_t)(dot - text))) {
            *ret_stat = &measure_stats[i];
            return true;
        }
    }
    *ret_stat = &measure_stats[0];
    return is_name(measure, text, strlen(text));
}

/* ---- measures with one value per run ---- */

struct scope {
    const struct profile *profile;
    const struct profile_run *run;
    double idle_watts;
};

static double end_number(const struct scope *scope, const char *key) {
    const json_t *value = json_object_get(scope->run->end, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The column of a run; NULL if the index is -1 or the run has no measured sample. */
static const struct profile_column *column_at(const struct profile_run *run, int index) {
    return index >= 0 ? profile_column(run, (size_t)index) : NULL;
}

/* The growth of a counter in the measured phase. */
static double grown(const struct profile_run *run, int index) {
    const struct profile_column *column = column_at(run, index);
    return column != NULL ? column->grown : NAN;
}

static double or_else(double value, double other) {
    return isnan(value) ? other : value;
}

static double wall(const struct scope *scope) {
    return or_else(end_number(scope, "wall_seconds"), scope->run->measured_s);
}

static double user(const struct scope *scope) {
    return or_else(end_number(scope, "user_seconds"),
                   grown(scope->run, profile_find(scope->profile, "cpu.user_seconds")));
}

static double sys(const struct scope *scope) {
    return or_else(end_number(scope, "system_seconds"),
                   grown(scope->run, profile_find(scope->profile, "cpu.system_seconds")));
}

static double overhead(const struct scope *scope) {
    return 100 * end_number(scope, "overhead_seconds") / wall(scope);
}

static double peak_memory(const struct scope *scope) {
    const struct profile_column *column =
        column_at(scope->run, profile_find(scope->profile, "memory.peak_bytes"));
    return or_else(end_number(scope, "peak_memory_bytes"),
                   column != NULL ? column->moments.max : NAN);
}

/* The mean power of all samples times the length of the phase, since the samples do not cover the
 * whole phase. */
static double joules(const struct scope *scope) {
    const struct profile_column *energy = profile_column(scope->run, DERIVED_ENERGY);
    return energy != NULL ? profile_rate(energy) * scope->run->measured_s : NAN;
}

static double net_joules(const struct scope *scope) {
    return joules(scope) - scope->idle_watts * scope->run->measured_s;
}

static int frame_counter(const struct profile *profile) {
    int fps = profile_find(profile, "app.fps_total");
    return fps >= 0 ? fps : profile_find(profile, "app.frames_total");
}

/* The application's final count if the whole run is measured. */
static double frames(const struct scope *scope) {
    double measured = grown(scope->run, frame_counter(scope->profile));
    double counted = end_number(scope, "frames");
    bool whole = true;
    for (size_t i = 0; i < scope->run->n_phases; i++) {
        whole = whole && scope->run->phases[i].phase != PHASE_WARMUP;
    }
    return isnan(measured) || (whole && !isnan(counted)) ? counted : measured;
}

/* Without the energy of the idle machine, if its idle power is known. */
static double joules_per_frame(const struct scope *scope) {
    double n = frames(scope);
    return n > 0 ? or_else(net_joules(scope), joules(scope)) / n : NAN;
}

static double idle(const struct scope *scope) {
    return scope->idle_watts;
}

static const struct scalar {
    const char *name;
    const char *unit;
    enum better better;
    double (*of)(const struct scope *scope);
} scalars[] = {
    {"cpu.system_seconds", "s", BETTER_LOWER, sys},
    {"cpu.user_seconds", "s", BETTER_LOWER, user},
    {"energy.joules", "J", BETTER_LOWER, joules},
    {"energy.net_joules", "J", BETTER_LOWER, net_joules},
    {"energy_per_frame.joules", "J", BETTER_LOWER, joules_per_frame},
    {"frames", "", BETTER_HIGHER, frames},
    {"memory.peak_bytes", "B", BETTER_LOWER, peak_memory},
    {"overhead.percent", "%", BETTER_NEITHER, overhead},
    {"power.idle_watts", "W", BETTER_NEITHER, idle},
    {"wall.seconds", "s", BETTER_LOWER, wall},
};

static void add_idle_of(const struct profile_target *target, double *joules_sum, double *time) {
    for (size_t i = 0; i < target->n_runs; i++) {
        *joules_sum += target->runs[i].idle_joules;
        *time += target->runs[i].idle_s;
    }
}

static double idle_watts(const struct profile *profile, const struct profile_target *target) {
    double energy = 0, time = 0;
    add_idle_of(target, &energy, &time);
    for (size_t i = 0; time == 0 && i < profile->n_targets; i++) {
        add_idle_of(&profile->targets[i], &energy, &time);
    }
    return time > 0 ? energy / time : NAN;
}

static void add_scalar(struct measures *measures, const struct profile *profile,
                       const struct profile_target *target, const struct scalar *scalar) {
    struct measure *measure = measures_add(measures, scalar->name, scalar->unit);
    measure->better = scalar->better;
    double watts = idle_watts(profile, target);
    for (size_t i = 0; i < target->n_runs; i++) {
        struct scope scope = {profile, &target->runs[i], watts};
        double value = target->runs[i].measured ? scalar->of(&scope) : NAN;
        if (isfinite(value)) {
            measure_add_run(measure, target->runs[i].number, value);
        }
    }
    measure_sum_up_runs(measure);
}

static void add_scalars(struct measures *measures, const struct profile *profile,
                        const struct profile_target *target) {
    for (size_t i = 0; i < ARRAY_LEN(scalars); i++) {
        add_scalar(measures, profile, target, &scalars[i]);
    }
}

/* ---- the application's histograms ---- */

/* The buckets of one name and one set of labels without `le`. */
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
    histograms->items =
        mem_resize(histograms->items, histograms->n + 1, sizeof(*histograms->items));
    struct histogram *histogram = &histograms->items[histograms->n++];
    *histogram = (struct histogram){.key = mem_strdup(key), .unit = unit};
    return histogram;
}

/* Keeps the bounds ascending. */
static void add_bucket(struct histogram *histogram, double le, size_t column) {
    __typeof__(histogram->buckets) buckets =
        mem_resize(histogram->buckets, histogram->n_buckets + 1, sizeof(*buckets));
    histogram->buckets = buckets;
    size_t i = histogram->n_buckets++;
    for (; i > 0 && buckets[i - 1].le > le; i--) {
        buckets[i] = buckets[i - 1];
    }
    buckets[i].le = le;
    buckets[i].column = column;
}

static void find_histograms(const struct profile *profile, struct histograms *ret) {
    for (size_t i = N_DERIVED; i < profile_n_columns(profile); i++) {
        const struct record_series *series = profile_series(profile, i);
        struct buf key CLEANUP_BUF = {0};
        double le;
        if (series->type == RECORD_BUCKET && histogram_key_of(series, &key, &le) == 0) {
            add_bucket(get_histogram(ret, buf_str(&key), series->unit), le, i);
        }
    }
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
    /* The lowest bound above all values, if any. */
    size_t top = 0;
    while (top < n - 1 && buckets[top].count < buckets[n - 1].count) {
        top++;
    }
    measure->max = isfinite(buckets[top].le) ? buckets[top].le : NAN;
}

/* The content of each bucket with a finite bound, for the plot. */
static void set_spread(struct measure *measure, const struct bucket *buckets, size_t n) {
    measure->spread = mem_zalloc(n, sizeof(*measure->spread));
    measure->bucketed = true;
    for (size_t i = 0; i < n; i++) {
        double count = buckets[i].count - (i > 0 ? buckets[i - 1].count : 0);
        if (isfinite(buckets[i].le)) {
            measure->spread[measure->n_spread++] = (struct weighted){buckets[i].le, count};
        }
    }
}

static void add_histogram_runs(struct measure *measure, const struct profile *profile,
                               const struct profile_target *target,
                               const struct histogram *histogram) {
    int sum_at = find_part(profile, histogram->key, "_sum");
    int last = (int)histogram->buckets[histogram->n_buckets - 1].column;
    double sum = 0, count = 0;
    for (size_t i = 0; i < target->n_runs; i++) {
        double run_sum = grown(&target->runs[i], sum_at), run_count = grown(&target->runs[i], last);
        if (run_count > 0 && !isnan(run_sum)) {
            measure_add_run(measure, target->runs[i].number, run_sum / run_count);
            sum += run_sum;
            count += run_count;
        }
    }
    measure->mean = count > 0 ? sum / count : NAN;
}

static void add_histogram(struct measures *measures, const struct profile *profile,
                          const struct profile_target *target, const struct histogram *histogram) {
    size_t n = histogram->n_buckets;
    struct bucket *buckets CLEANUP_FREE = mem_zalloc(n, sizeof(*buckets));
    struct measure *measure =
        measures_add(measures, record_short_key(histogram->key), histogram->unit);
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
        set_spread(measure, buckets, n);
        add_histogram_runs(measure, profile, target, histogram);
    }
}

static void add_histograms(struct measures *measures, const struct profile *profile,
                           const struct profile_target *target) {
    struct histograms histograms CLEANUP(histograms_finish) = {0};
    find_histograms(profile, &histograms);
    for (size_t i = 0; i < histograms.n; i++) {
        add_histogram(measures, profile, target, &histograms.items[i]);
    }
}

/* ---- measures made of columns ---- */

/* If the coefficient of variation between runs exceeds this, the measure is unstable. */
static const double max_cv = 0.05;

static bool ends_in(const char *text, size_t len, const char *end) {
    size_t n = strlen(end);
    return len >= n && strncmp(text + len - n, end, n) == 0;
}

static struct measure *add_measure(struct measures *measures, const char *name, const char *unit,
                                   enum better better) {
    struct measure *measure = measures_add(measures, name, unit);
    measure->better = better;
    return measure;
}

/* Sets the statistics from a pool of samples. */
static void take_pool(struct measure *measure, const struct profile_pool *pool) {
    double weight;
    measure->spread = quantiles_sorted(&pool->quantiles, &measure->n_spread, &weight);
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

/* Fills a measure from a column: of a gauge the samples, of a counter the rate. */
static void fill_from_column(struct measure *measure, const struct profile_target *target,
                             size_t index, bool is_counter) {
    for (size_t i = 0; i < target->n_runs; i++) {
        const struct profile_column *column = profile_column(&target->runs[i], index);
        double value = column == NULL ? NAN
                       : is_counter   ? profile_rate(column)
                                      : column->moments.mean;
        if (isfinite(value)) {
            measure_add_run(measure, target->runs[i].number, value);
        }
    }
    if (index < target->n_pools && target->pools[index].moments.n > 0) {
        take_pool(measure, &target->pools[index]);
    } else {
        measure_sum_up_runs(measure);
    }
    /* The rates of whole runs are more exact than those of windows, which leave out an incomplete
     * one. */
    if (is_counter && measure->n_runs > 0) {
        measure->mean = moments_of(measure->runs, measure->n_runs).mean;
    }
}

/* Adds the growth of a counter in each run. */
static void add_growth(struct measures *measures, const struct profile_target *target, size_t index,
                       const char *name, const char *unit) {
    struct measure *measure = measures_add(measures, name, unit);
    for (size_t i = 0; i < target->n_runs; i++) {
        const struct profile_column *column = profile_column(&target->runs[i], index);
        if (column != NULL) {
            measure_add_run(measure, target->runs[i].number, column->grown);
        }
    }
    measure_sum_up_runs(measure);
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
    /* More frames are better; for other counters that is unknown. */
    bool is_rate = profile_find_gauge(profile, series) >= 0;
    bool is_frames = (int)index == frame_counter(profile);
    struct buf rate CLEANUP_BUF = {0};
    buf_printf(&rate, "%.*s%s%s", (int)(bare - strlen("_total")), name,
               is_rate ? "" : "_per_second", name + bare);
    struct measure *measure = add_measure(measures, buf_str(&rate), "/s",
                                          is_rate || is_frames ? BETTER_HIGHER : BETTER_NEITHER);
    fill_from_column(measure, target, index, true);
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
            fill_from_column(measure, target, index, false);
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

/* Drops measures without values, and marks those that are unstable. */
static void keep_measured(struct measures *measures) {
    size_t kept = 0;
    for (size_t i = 0; i < measures->n; i++) {
        struct measure *measure = &measures->items[i];
        if (measure->n > 0) {
            struct moments moments = moments_of(measure->runs, measure->n_runs);
            measure->unstable = measure->better != BETTER_NEITHER && moments.n >= 3 &&
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

void measures_make(const struct profile *profile, const struct profile_target *target,
                   struct measures *ret_measures) {
    *ret_measures = (struct measures){0};
    add_scalars(ret_measures, profile, target);
    struct measure *cpu = add_measure(ret_measures, "cpu.percent", "%", BETTER_LOWER);
    fill_from_column(cpu, target, DERIVED_CPU, true);
    scale_to_percent(cpu);
    for (size_t i = N_DERIVED; i < profile_n_columns(profile); i++) {
        add_series(ret_measures, profile, target, i);
    }
    add_histograms(ret_measures, profile, target);
    keep_measured(ret_measures);
}
