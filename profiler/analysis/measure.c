#include "profiler/analysis/measure.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/core/memory.h"
#include "profiler/analysis/profile.h"

const char *const better_names[] = {
    [BETTER_NEITHER] = NULL, [BETTER_HIGHER] = "higher", [BETTER_LOWER] = "lower"};

const char *const measure_stats[] = {"mean", "sd", "min", "p50", "p90", "p95", "p99", "max"};
_Static_assert(ARRAY_LEN(measure_stats) == N_MEASURE_STATS, "one of them is missing");

/* The quantiles from STAT_P50 to STAT_P99. */
static const double quantiles[] = {0.5, 0.9, 0.95, 0.99};

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

struct measure *measures_add(struct measures *measures, const char *name, const char *unit,
                             enum better better) {
    ARRAY_GROW(&measures->items, &measures->cap, measures->n + 1);
    struct measure *measure = &measures->items[measures->n++];
    *measure =
        (struct measure){.name = mem_strdup(name), .unit = mem_strdup(unit), .better = better};
    for (size_t i = 0; i < N_MEASURE_STATS; i++) {
        measure->stats[i] = NAN;
    }
    return measure;
}

void measure_add_run(struct measure *measure, unsigned number, double value) {
    if (!isfinite(value)) {
        return;
    }
    size_t n = measure->n_runs++;
    measure->runs = mem_resize(measure->runs, n + 1, sizeof(*measure->runs));
    measure->run_numbers = mem_resize(measure->run_numbers, n + 1, sizeof(*measure->run_numbers));
    measure->runs[n] = value;
    measure->run_numbers[n] = number;
}

double measure_of_run(const struct measure *measure, unsigned number) {
    for (size_t i = 0; i < measure->n_runs; i++) {
        if (measure->run_numbers[i] == number) {
            return measure->runs[i];
        }
    }
    return NAN;
}

static void set_moments(struct measure *measure, const struct moments *moments) {
    if (moments->n > 0) {
        measure->n = (double)moments->n;
        measure->mean = moments->mean;
        measure->sd = moments_sd(moments);
        measure->min = moments->min;
        measure->max = moments->max;
    }
}

void measure_sum_up_runs(struct measure *measure) {
    struct moments moments = moments_of(measure->runs, measure->n_runs);
    set_moments(measure, &moments);
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

size_t measure_split(const char *text, enum measure_stat *ret_stat) {
    const char *dot = strrchr(text, '.');
    for (size_t i = 0; dot != NULL && i < N_MEASURE_STATS; i++) {
        if (strcmp(measure_stats[i], dot + 1) == 0) {
            *ret_stat = (enum measure_stat)i;
            return (size_t)(dot - text);
        }
    }
    *ret_stat = STAT_MEAN;
    return strlen(text);
}

bool measure_matches(const struct measure *measure, const char *text, enum measure_stat *ret_stat) {
    return is_name(measure, text, measure_split(text, ret_stat));
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

/* The growth of a counter in the measured phase. */
static double grown(const struct profile_run *run, int index) {
    const struct profile_column *column = profile_column(run, index);
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
        profile_column(scope->run, profile_find(scope->profile, "memory.peak_bytes"));
    return or_else(end_number(scope, "peak_memory_bytes"),
                   column != NULL ? column->moments.max : NAN);
}

/* The samples do not cover the whole phase, so their mean power counts for all of it. */
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

/* Of the runs of this target, else of the first that has a baseline. */
static double idle_watts(const struct profile *profile, const struct profile_target *target) {
    double energy = 0, time = 0;
    for (size_t i = 0; time == 0 && i <= profile->n_targets; i++) {
        const struct profile_target *from = i == 0 ? target : &profile->targets[i - 1];
        for (size_t j = 0; j < from->n_runs; j++) {
            energy += from->runs[j].idle_joules;
            time += from->runs[j].idle_s;
        }
    }
    return time > 0 ? energy / time : NAN;
}

static void add_scalar(struct measures *measures, const struct profile *profile,
                       const struct profile_target *target, const struct scalar *scalar) {
    struct measure *measure = measures_add(measures, scalar->name, scalar->unit, scalar->better);
    double watts = idle_watts(profile, target);
    for (size_t i = 0; i < target->n_runs; i++) {
        struct scope scope = {profile, &target->runs[i], watts};
        measure_add_run(measure, target->runs[i].number,
                        target->runs[i].measured ? scalar->of(&scope) : NAN);
    }
    measure_sum_up_runs(measure);
}

/* ---- the application's histograms ---- */

static void set_quantiles(struct measure *measure, const struct bucket *buckets, size_t n) {
    measure->n = buckets[n - 1].count;
    for (size_t i = 0; i < ARRAY_LEN(quantiles); i++) {
        measure->stats[STAT_P50 + i] = statistics_bucket_quantile(buckets, n, quantiles[i]);
    }
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

static void add_histogram_runs(struct measure *measure, const struct profile_target *target,
                               const struct profile_histogram *histogram) {
    int last = histogram->buckets[histogram->n_buckets - 1].column;
    double sum = 0, count = 0;
    for (size_t i = 0; i < target->n_runs; i++) {
        double run_sum = grown(&target->runs[i], histogram->sum);
        double run_count = grown(&target->runs[i], last);
        if (run_count > 0 && !isnan(run_sum)) {
            measure_add_run(measure, target->runs[i].number, run_sum / run_count);
            sum += run_sum;
            count += run_count;
        }
    }
    measure->mean = count > 0 ? sum / count : NAN;
}

static void add_histogram(struct measures *measures, const struct profile *profile,
                          const struct profile_target *target,
                          const struct profile_histogram *histogram) {
    size_t n = histogram->n_buckets;
    struct bucket *buckets CLEANUP_FREE = mem_zalloc(n, sizeof(*buckets));
    const char *unit = profile_series(profile, histogram->buckets[0].column)->unit;
    struct measure *measure =
        measures_add(measures, record_short_key(histogram->key), unit, BETTER_LOWER);
    for (size_t i = 0; i < n; i++) {
        buckets[i].le = histogram->buckets[i].le;
        for (size_t j = 0; j < target->n_runs; j++) {
            double count = grown(&target->runs[j], histogram->buckets[i].column);
            buckets[i].count += isnan(count) ? 0 : count;
        }
    }
    if (buckets[n - 1].count > 0) {
        set_quantiles(measure, buckets, n);
        set_spread(measure, buckets, n);
        add_histogram_runs(measure, target, histogram);
    }
}

/* ---- measures made of columns ---- */

/* If the coefficient of variation between runs exceeds this, the measure is unstable. */
static const double max_cv = 0.05;

static bool ends_in(const char *text, size_t len, const char *end) {
    size_t n = strlen(end);
    return len >= n && strncmp(text + len - n, end, n) == 0;
}

/* Sets the statistics from a pool of samples. */
static void take_pool(struct measure *measure, const struct profile_pool *pool) {
    double weight;
    measure->spread = quantiles_sorted(&pool->quantiles, &measure->n_spread, &weight);
    set_moments(measure, &pool->moments);
    for (size_t i = 0; i < ARRAY_LEN(quantiles); i++) {
        measure->stats[STAT_P50 + i] =
            weighted_quantile(measure->spread, measure->n_spread, weight, quantiles[i]);
    }
}

static double mean_of(const struct profile_column *column) {
    return column->moments.mean;
}

static double growth_of(const struct profile_column *column) {
    return column->grown;
}

static void add_runs(struct measure *measure, const struct profile_target *target, int index,
                     double (*of)(const struct profile_column *column)) {
    for (size_t i = 0; i < target->n_runs; i++) {
        const struct profile_column *column = profile_column(&target->runs[i], index);
        measure_add_run(measure, target->runs[i].number, column != NULL ? of(column) : NAN);
    }
}

/* Fills a measure from a column: of a gauge the samples, of a counter the rate. */
static void fill_from_column(struct measure *measure, const struct profile_target *target,
                             int index, bool is_counter) {
    add_runs(measure, target, index, is_counter ? profile_rate : mean_of);
    if ((size_t)index < target->n_pools && target->pools[index].moments.n > 0) {
        take_pool(measure, &target->pools[index]);
    } else {
        measure_sum_up_runs(measure);
    }
    /* More exact than the rates of windows, which leave out an incomplete one. */
    if (is_counter && measure->n_runs > 0) {
        measure->mean = moments_of(measure->runs, measure->n_runs).mean;
    }
}

/* Adds the growth of a counter in each run. */
static void add_growth(struct measures *measures, const struct profile_target *target, int index,
                       const char *name, const char *unit) {
    struct measure *measure = measures_add(measures, name, unit, BETTER_NEITHER);
    add_runs(measure, target, index, growth_of);
    measure_sum_up_runs(measure);
}

static void add_app_counter(struct measures *measures, const struct profile *profile,
                            const struct profile_target *target, int index) {
    const struct record_series *series = profile_series(profile, index);
    const char *name = record_short_key(series->key);
    size_t bare = strcspn(name, "{");
    add_growth(measures, target, index, name, series->unit);
    if (!ends_in(name, bare, "_total")) {
        return;
    }
    /* More frames are better; for other counters that is unknown. */
    bool is_rate = profile_find_gauge(profile, series) >= 0;
    bool is_frames = index == frame_counter(profile);
    struct buf rate CLEANUP_BUF = {0};
    buf_printf(&rate, "%.*s%s%s", (int)(bare - strlen("_total")), name,
               is_rate ? "" : "_per_second", name + bare);
    struct measure *measure = measures_add(measures, buf_str(&rate), "/s",
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
                       const struct profile_target *target, int index) {
    const struct record_series *series = profile_series(profile, index);
    const char *name = record_short_key(series->key);
    bool is_app = record_key_is_app(series->key);
    if (series->type == RECORD_GAUGE) {
        if (is_app ? profile_find_counter(profile, series) < 0
                   : measures_find(measures, name) == NULL) {
            struct measure *measure = measures_add(measures, name, series->unit, better_of(series));
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
        measure->stats[i] *= 100;
    }
}

static int compare_names(const void *a, const void *b) {
    const struct measure *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Drops measures without values and, if the GPU memory of the application is known, the growth of
 * the machine's. Marks those that are unstable. */
static void keep_measured(struct measures *measures) {
    size_t kept = 0;
    const struct measure *own = measures_find(measures, RECORD_NEW_GPU_MEMORY);
    bool is_known = own != NULL && own->n > 0;
    for (size_t i = 0; i < measures->n; i++) {
        struct measure *measure = &measures->items[i];
        bool of_machine = strcmp(measure->name, RECORD_NEW_GPU_MEMORY RECORD_OF_MACHINE) == 0;
        if (measure->n > 0 && !(of_machine && is_known)) {
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
    for (size_t i = 0; i < ARRAY_LEN(scalars); i++) {
        add_scalar(ret_measures, profile, target, &scalars[i]);
    }
    struct measure *cpu = measures_add(ret_measures, "cpu.percent", "%", BETTER_LOWER);
    fill_from_column(cpu, target, DERIVED_CPU, true);
    scale_to_percent(cpu);
    for (int i = N_DERIVED; i < profile_n_columns(profile); i++) {
        add_series(ret_measures, profile, target, i);
    }
    for (size_t i = 0; i < profile->n_histograms; i++) {
        add_histogram(ret_measures, profile, target, &profile->histograms[i]);
    }
    keep_measured(ret_measures);
}
