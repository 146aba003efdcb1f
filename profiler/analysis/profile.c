#include "profiler/analysis/profile.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"

static const double window_s = 1;

/* ---- targets and runs ---- */

static struct profile_target *get_target(struct profile *profile, const char *name) {
    for (size_t i = 0; i < profile->n_targets; i++) {
        if (strcmp(profile->targets[i].name, name) == 0) {
            return &profile->targets[i];
        }
    }
    profile->targets =
        mem_resize(profile->targets, profile->n_targets + 1, sizeof(*profile->targets));
    struct profile_target *target = &profile->targets[profile->n_targets++];
    *target = (struct profile_target){.name = mem_strdup(name)};
    return target;
}

/* The current run; a number that occurs again after its end starts another run. */
static struct profile_run *get_run(struct profile_target *target, const struct record_line *line) {
    struct profile_run *last = target->n_runs > 0 ? &target->runs[target->n_runs - 1] : NULL;
    bool ended =
        last != NULL && last->end != NULL && line->kind == RECORD_PHASE &&
        (line->phase == PHASE_WARMUP || line->phase == PHASE_RUN || line->phase == PHASE_BASELINE);
    if (last != NULL && last->number == line->run && !ended) {
        return last;
    }
    target->runs = mem_resize(target->runs, target->n_runs + 1, sizeof(*target->runs));
    struct profile_run *run = &target->runs[target->n_runs++];
    *run = (struct profile_run){.number = line->run, .began_at = line->at};
    return run;
}

/* Extends a table by zeroed rows until it has one of that index. */
static void *reach(void *rows, size_t *n_rows, size_t index, size_t size) {
    if (index < *n_rows) {
        return rows;
    }
    size_t n = index + 16;
    char *grown = mem_resize(rows, n, size);
    memset(grown + *n_rows * size, 0, (n - *n_rows) * size);
    *n_rows = n;
    return grown;
}

/* ---- samples ---- */

static enum record_phase phase_of(const struct profile_run *run) {
    return run->n_phases > 0 && run->end == NULL ? run->phases[run->n_phases - 1].phase
                                                 : PHASE_NONE;
}

static void add_measured(struct profile_column *column, struct profile_pool *pool, double value) {
    moments_add(&column->moments, value);
    moments_add(&pool->moments, value);
    quantiles_add(&pool->quantiles, value);
}

/* How a series grows. */
enum growth {
    GAUGE,
    COUNTER,
    APP_COUNTER, /* starts at zero with the run */
};

static void add_counter(struct profile_column *column, struct profile_pool *pool,
                        enum growth growth, double t, double value) {
    if (column->n == 0) {
        bool begins = growth == APP_COUNTER && column->timeline.n_bins == 1;
        column->initial = column->grown = column->window_grown = begins ? value : 0;
        column->window_t = t;
    } else {
        /* A counter that decreases was reset to zero. */
        column->grown += value >= column->value ? value - column->value : value;
    }
    double waited = t - column->window_t;
    /* A sample that is a little early must not extend the window by another interval. */
    if (waited >= window_s - 0.01) {
        add_measured(column, pool, (column->grown - column->window_grown) / waited);
        column->window_t = t;
        column->window_grown = column->grown;
    }
}

static void add_value(struct profile_target *target, struct profile_run *run, size_t index,
                      enum growth growth, double t, double value) {
    run->columns = reach(run->columns, &run->n_columns, index, sizeof(*run->columns));
    target->pools = reach(target->pools, &target->n_pools, index, sizeof(*target->pools));
    struct profile_column *column = &run->columns[index];
    struct profile_pool *pool = &target->pools[index];
    timeline_add(&column->timeline, t, value);
    if (phase_of(run) == PHASE_RUN) {
        if (growth == GAUGE) {
            add_measured(column, pool, value);
        } else {
            add_counter(column, pool, growth, t, value);
        }
        column->first_t = column->n == 0 ? t : column->first_t;
        column->n++;
        column->t = t;
        column->value = value;
    }
}

/* The values that derived columns are made of. */
enum { CPU, CPU_SYSTEM, CPU_USER, JOULES, WATTS, N_SOURCES };
static const char *const sources[N_SOURCES] = {
    [CPU] = "cpu.seconds",           [CPU_SYSTEM] = "cpu.system_seconds",
    [CPU_USER] = "cpu.user_seconds", [JOULES] = "energy.joules",
    [WATTS] = "power.watts",
};

/* The joules so far: counted, or integrated from the watts by the trapezoidal rule. */
static double joules_by(struct profile_run *run, const double *values, double t) {
    double joules = values[JOULES], watts = values[WATTS];
    if (!isnan(joules) || isnan(watts)) {
        return joules;
    }
    if (run->watts_t > 0) {
        run->joules += (watts + run->watts) / 2 * (t - run->watts_t);
    }
    run->watts_t = t;
    run->watts = watts;
    return run->joules;
}

static void add_idle(struct profile_run *run, double t, double joules) {
    const struct timeline *timeline = &run->columns[DERIVED_ENERGY].timeline;
    if (timeline->n_bins >= 2) {
        run->idle_s = t - timeline->bins[0].t;
        run->idle_joules = joules - timeline->bins[0].last;
    }
}

static void add_derived(struct profile_target *target, struct profile_run *run, double t,
                        const double *values) {
    double cpu = isnan(values[CPU]) ? values[CPU_USER] + values[CPU_SYSTEM] : values[CPU];
    if (!isnan(cpu)) {
        add_value(target, run, DERIVED_CPU, COUNTER, t, cpu);
    }
    double joules = joules_by(run, values, t);
    if (!isnan(joules)) {
        add_value(target, run, DERIVED_ENERGY, COUNTER, t, joules);
        if (phase_of(run) == PHASE_BASELINE) {
            add_idle(run, t, joules);
        }
    }
}

static enum growth growth_of(const struct record_series *series) {
    return series->type == RECORD_GAUGE     ? GAUGE
           : record_key_is_app(series->key) ? APP_COUNTER
                                            : COUNTER;
}

static void take_sample(struct profile_target *target, struct profile_run *run,
                        const struct record_line *line) {
    double derived[N_SOURCES] = {NAN, NAN, NAN, NAN, NAN};
    for (size_t i = 0; i < line->n_values; i++) {
        const struct record_series *series = line->values[i].series;
        double value = line->values[i].value;
        if (!isfinite(value)) {
            continue;
        }
        for (size_t j = 0; j < N_SOURCES; j++) {
            derived[j] = strcmp(sources[j], series->key) == 0 ? value : derived[j];
        }
        add_value(target, run, N_DERIVED + series->index, growth_of(series), line->t, value);
    }
    run->n_samples++;
    run->end_t = line->t;
    if (phase_of(run) == PHASE_RUN) {
        run->measured_s = line->t - run->phases[run->n_phases - 1].t;
    }
    add_derived(target, run, line->t, derived);
}

/* ---- other lines ---- */

static void end_phase(struct profile_run *run, double t) {
    if (phase_of(run) == PHASE_RUN) {
        run->measured_s = t - run->phases[run->n_phases - 1].t;
    }
    run->end_t = t > run->end_t ? t : run->end_t;
}

static void take_phase(struct profile_run *run, const struct record_line *line) {
    end_phase(run, line->t);
    run->measured = run->measured || line->phase == PHASE_RUN;
    if (run->n_phases < PROFILE_MAX_PHASES) {
        run->phases[run->n_phases++] = (struct profile_phase){line->phase, line->t};
    }
}

static void take_end(struct profile_run *run, const struct record_line *line) {
    end_phase(run, line->t);
    json_decref(run->end);
    run->end = json_incref(line->object);
}

static void take_run_line(struct profile *profile, const struct record_line *line) {
    struct profile_target *target = get_target(profile, line->target);
    struct profile_run *run = get_run(target, line);
    switch (line->kind) {
    case RECORD_SAMPLE:
        profile->n_samples++;
        take_sample(target, run, line);
        break;
    case RECORD_PHASE:
        take_phase(run, line);
        break;
    case RECORD_END:
        take_end(run, line);
        break;
    default:
        run->n_lost += (size_t)json_integer_value(json_object_get(line->object, "samples"));
        break;
    }
}

static void take_line(struct profile *profile, const struct record_line *line) {
    profile->last_t = line->t > profile->last_t ? line->t : profile->last_t;
    struct profile_target *target;
    switch (line->kind) {
    case RECORD_SERIES:
        break;
    case RECORD_RUN:
        json_decref(profile->run);
        profile->run = json_incref(line->object);
        break;
    case RECORD_FINISHED:
        profile->finished = true;
        profile->interrupted = json_is_true(json_object_get(line->object, "interrupted"));
        break;
    case RECORD_TARGET:
        target = get_target(profile, line->target);
        json_decref(target->object);
        target->object = json_incref(line->object);
        break;
    default:
        take_run_line(profile, line);
        break;
    }
}

/* ---- queries ---- */

int profile_n_columns(const struct profile *profile) {
    return N_DERIVED + (int)profile->record->n_series;
}

const struct record_series *profile_series(const struct profile *profile, int index) {
    return profile->record->series[index - N_DERIVED];
}

const struct profile_column *profile_column(const struct profile_run *run, int index) {
    bool there = run->measured && index >= 0 && (size_t)index < run->n_columns;
    return there && run->columns[index].n > 0 ? &run->columns[index] : NULL;
}

int profile_find(const struct profile *profile, const char *key) {
    const struct record_series *series = record_find(profile->record, key);
    return series != NULL ? N_DERIVED + (int)series->index : -1;
}

/* The column whose key is the first `len` bytes of `key`, `suffix` and the labels of `key`. */
static int find_with_suffix(const struct profile *profile, const char *key, size_t len,
                            const char *suffix) {
    struct buf name CLEANUP_BUF = {0};
    buf_printf(&name, "%.*s%s%s", (int)len, key, suffix, key + strcspn(key, "{"));
    return profile_find(profile, buf_str(&name));
}

int profile_find_gauge(const struct profile *profile, const struct record_series *counter) {
    static const char total[] = "_total";
    size_t len = strlen(counter->name), n = strlen(total);
    bool is_total = len > n && strcmp(counter->name + len - n, total) == 0;
    return is_total ? find_with_suffix(profile, counter->key, len - n, "") : -1;
}

int profile_find_counter(const struct profile *profile, const struct record_series *gauge) {
    return find_with_suffix(profile, gauge->key, strlen(gauge->name), "_total");
}

double profile_rate(const struct profile_column *column) {
    double time = column->t - column->first_t;
    return column->n >= 2 && time > 0 ? (column->grown - column->initial) / time : NAN;
}

bool profile_run_failed(const struct profile_run *run) {
    if (run->end == NULL) {
        return false;
    }
    if (json_is_string(json_object_get(run->end, "error"))) {
        return true;
    }
    const char *by = json_string_value(json_object_get(run->end, "stopped_by"));
    bool by_itself = by == NULL || strcmp(by, "itself") == 0;
    return by_itself && !json_is_true(json_object_get(run->end, "timed_out")) &&
           (json_integer_value(json_object_get(run->end, "exit")) != 0 ||
            json_integer_value(json_object_get(run->end, "signal")) != 0);
}

void profile_run_outcome(const struct profile_run *run, struct buf *out) {
    const char *error = json_string_value(json_object_get(run->end, "error"));
    const char *by = json_string_value(json_object_get(run->end, "stopped_by"));
    if (run->end == NULL) {
        buf_add_str(out, "did not end");
    } else if (error != NULL) {
        buf_add_str(out, error);
    } else if (json_is_true(json_object_get(run->end, "timed_out"))) {
        buf_printf(out, "time over, %s", by != NULL ? by : "stopped");
    } else if (by != NULL && strcmp(by, "itself") != 0) {
        buf_printf(out, "stopped by %s", by);
    } else {
        json_int_t signal = json_integer_value(json_object_get(run->end, "signal"));
        json_int_t code = json_integer_value(json_object_get(run->end, "exit"));
        buf_printf(out, signal != 0 ? "signal %lld" : "exit %lld",
                   (long long)(signal != 0 ? signal : code));
    }
}

/* ---- histograms ---- */

/* Appends `app.inference_seconds{stage="a"}` of `app.inference_seconds{stage="a",le="0.1"}` and
 * yields the bound. -EINVAL if there is none. */
static int split_bucket(const struct record_series *series, struct buf *out, double *ret_le) {
    static const char name[] = "le=\"";
    const char *le = series->labels;
    while (strncmp(le, name, strlen(name)) != 0) {
        le = strchr(le, ',');
        if (le == NULL) {
            return -EINVAL;
        }
        le++;
    }
    const char *value = le + strlen(name);
    const char *end = strchr(value, '"');
    if (end == NULL || number_parse(value, (size_t)(end - value), ret_le) < 0) {
        return -EINVAL;
    }
    const char *behind = end[1] == ',' ? end + 2 : end + 1;
    size_t before = (size_t)(le - series->labels);
    before -= before > 0 && *behind == '\0';
    buf_add_str(out, series->name);
    if (before > 0 || *behind != '\0') {
        buf_printf(out, "{%.*s%s}", (int)before, series->labels, behind);
    }
    return 0;
}

static struct profile_histogram *get_histogram(struct profile *profile, const char *key,
                                               size_t name_len) {
    for (size_t i = 0; i < profile->n_histograms; i++) {
        if (strcmp(profile->histograms[i].key, key) == 0) {
            return &profile->histograms[i];
        }
    }
    profile->histograms =
        mem_resize(profile->histograms, profile->n_histograms + 1, sizeof(*profile->histograms));
    struct profile_histogram *histogram = &profile->histograms[profile->n_histograms++];
    *histogram = (struct profile_histogram){.key = mem_strdup(key), .name_len = name_len};
    histogram->count = find_with_suffix(profile, key, name_len, "_count");
    histogram->sum = find_with_suffix(profile, key, name_len, "_sum");
    return histogram;
}

/* Keeps the bounds ascending. */
static void add_bucket(struct profile_histogram *histogram, double le, int column) {
    struct profile_bucket *buckets =
        mem_resize(histogram->buckets, histogram->n_buckets + 1, sizeof(*buckets));
    size_t i = histogram->n_buckets++;
    for (; i > 0 && buckets[i - 1].le > le; i--) {
        buckets[i] = buckets[i - 1];
    }
    buckets[i] = (struct profile_bucket){le, column};
    histogram->buckets = buckets;
}

static void find_histograms(struct profile *profile) {
    for (int i = N_DERIVED; i < profile_n_columns(profile); i++) {
        const struct record_series *series = profile_series(profile, i);
        struct buf key CLEANUP_BUF = {0};
        double le;
        if (series->type == RECORD_BUCKET && split_bucket(series, &key, &le) == 0) {
            add_bucket(get_histogram(profile, buf_str(&key), strlen(series->name)), le, i);
        }
    }
}

/* ---- the whole ---- */

const char *profile_text(const struct profile *profile, const char *object, const char *key) {
    const char *text =
        json_string_value(json_object_get(json_object_get(profile->run, object), key));
    return text != NULL ? text : "";
}

static void evaluate(struct profile *profile, struct profile_target *target) {
    for (size_t i = 0; i < target->n_runs; i++) {
        target->n_measured += target->runs[i].measured;
        target->n_failed_runs += profile_run_failed(&target->runs[i]);
    }
    measures_make(profile, target, &target->measures);
    target->gates = gates_judge(json_object_get(profile->run, "gates"), target->name,
                                json_string_value(json_object_get(target->object, "of")),
                                &target->measures, NULL, &target->n_gates);
    for (size_t i = 0; i < target->n_gates; i++) {
        profile->n_gates += target->gates[i].state != GATE_SKIPPED;
        profile->n_failed_gates += target->gates[i].state == GATE_FAILED;
    }
    profile->n_failed_runs += target->n_failed_runs;
}

int profile_read(const char *path, struct profile **ret_profile, struct error *err) {
    struct profile *profile CLEANUP_PROFILE = mem_zalloc(1, sizeof(*profile));
    struct record_line line;
    int r = record_open(path, &profile->record, err);
    while (r >= 0 && (r = record_next(profile->record, &line, err)) > 0) {
        take_line(profile, &line);
    }
    if (r < 0) {
        return r;
    }
    if (profile->run == NULL) {
        return error_set(err, -ENODATA, "%s: has no line of kind \"run\"", path);
    }
    find_histograms(profile);
    for (size_t i = 0; i < profile->n_targets; i++) {
        evaluate(profile, &profile->targets[i]);
    }
    *ret_profile = TAKE(profile);
    return 0;
}

static void finish_run(struct profile_run *run) {
    for (size_t i = 0; i < run->n_columns; i++) {
        timeline_finish(&run->columns[i].timeline);
    }
    free(run->columns);
    json_decref(run->end);
}

static void finish_target(struct profile_target *target) {
    for (size_t i = 0; i < target->n_runs; i++) {
        finish_run(&target->runs[i]);
    }
    for (size_t i = 0; i < target->n_pools; i++) {
        quantiles_finish(&target->pools[i].quantiles);
    }
    measures_finish(&target->measures);
    free(target->gates);
    free(target->runs);
    free(target->pools);
    free(target->name);
    json_decref(target->object);
}

void profile_destroy(struct profile *profile) {
    if (profile == NULL) {
        return;
    }
    for (size_t i = 0; i < profile->n_targets; i++) {
        finish_target(&profile->targets[i]);
    }
    for (size_t i = 0; i < profile->n_histograms; i++) {
        free(profile->histograms[i].key);
        free(profile->histograms[i].buckets);
    }
    free(profile->histograms);
    free(profile->targets);
    json_decref(profile->run);
    record_close(profile->record);
    free(profile);
}
