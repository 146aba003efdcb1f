#include "profiler/analysis/results.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "profiler/analysis/report_text.h"

static void make_result(const struct profile *profile, const struct profile_target *target,
                        struct result *result) {
    result->target = target;
    for (size_t i = 0; i < target->n_runs; i++) {
        result->n_measured += target->runs[i].measured;
        result->n_failed_runs += profile_run_failed(&target->runs[i]);
    }
    measures_make(profile, target, &result->measures);
    result->gates = gates_judge(json_object_get(profile->run, "gates"), target->name,
                                json_string_value(json_object_get(target->object, "of")),
                                &result->measures, NULL, &result->n_gates);
}

int results_read_record(const char *path, struct results *ret_results, struct error *err) {
    struct profile *profile;
    int r = profile_read(path, &profile, err);
    if (r < 0) {
        return r;
    }
    *ret_results = (struct results){
        .profile = profile,
        .items = mem_zalloc(profile->n_targets, sizeof(*ret_results->items)),
        .n = profile->n_targets,
    };
    for (size_t i = 0; i < ret_results->n; i++) {
        struct result *result = &ret_results->items[i];
        make_result(profile, &profile->targets[i], result);
        ret_results->n_failed_runs += result->n_failed_runs;
        for (size_t j = 0; j < result->n_gates; j++) {
            ret_results->n_gates += result->gates[j].state != GATE_SKIPPED;
            ret_results->n_failed_gates += result->gates[j].state == GATE_FAILED;
        }
    }
    return 0;
}

int results_read(const char *dir, struct results *ret_results, struct error *err) {
    char *path CLEANUP_FREE = file_path_join(dir, "samples.jsonl");
    return results_read_record(path, ret_results, err);
}

void results_finish(struct results *results) {
    for (size_t i = 0; i < results->n; i++) {
        measures_finish(&results->items[i].measures);
        free(results->items[i].gates);
    }
    free(results->items);
    profile_destroy(results->profile);
    *results = (struct results){0};
}

const char *results_text(const struct results *results, const char *object, const char *key) {
    const char *text =
        json_string_value(json_object_get(json_object_get(results->profile->run, object), key));
    return text != NULL ? text : "";
}

bool results_is_sweep(const struct results *results) {
    bool is = false;
    for (size_t i = 0; i < results->n; i++) {
        is = is || json_object_size(json_object_get(results->items[i].target->object, "knobs")) > 0;
    }
    return is;
}

static void add_value(struct buf *out, const json_t *value) {
    char *text CLEANUP_FREE =
        json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    buf_add_str(out, text != NULL ? text : "null");
}

/* Copies a member of a line of the record, if it is there. */
static void add_copy(struct buf *out, const char *key, const json_t *object) {
    const json_t *value = json_object_get(object, key);
    if (value != NULL) {
        text_add_key(out, key);
        add_value(out, value);
    }
}

/* ---- measures ---- */

static void add_runs(struct buf *out, const struct measure *measure) {
    text_add_key(out, "runs");
    for (size_t i = 0; i < measure->n_runs; i++) {
        buf_add_char(out, i == 0 ? '[' : ',');
        text_add_number(out, measure->runs[i]);
    }
    buf_add_str(out, measure->n_runs > 0 ? "]" : "[]");
}

static void add_interval(struct buf *out, const struct measure *measure) {
    if (measure->n_runs < 2) {
        return;
    }
    struct moments moments = moments_of(measure->runs, measure->n_runs);
    double half = moments_ci95(&moments);
    text_add_key(out, "ci95");
    buf_add_char(out, '[');
    text_add_number(out, moments.mean - half);
    buf_add_char(out, ',');
    text_add_number(out, moments.mean + half);
    buf_add_char(out, ']');
    text_add_number_of(out, "cv", moments_cv(&moments));
}

static void add_measure(struct buf *out, const struct measure *measure) {
    static const char *const better[] = {
        [BETTER_HIGHER] = "higher", [BETTER_LOWER] = "lower", [BETTER_NEITHER] = NULL};
    buf_add_char(out, '{');
    if (measure->unit[0] != '\0') {
        text_add_text_of(out, "unit", measure->unit);
    }
    if (better[measure->better] != NULL) {
        text_add_text_of(out, "better", better[measure->better]);
    }
    text_add_number_of(out, "n", measure->n);
    for (size_t i = 0; i < N_MEASURE_STATS; i++) {
        double value = measure_stat(measure, &measure_stats[i]);
        if (isfinite(value)) {
            text_add_number_of(out, measure_stats[i].name, value);
        }
    }
    add_interval(out, measure);
    if (measure->unstable) {
        text_add_bool_of(out, "unstable", true);
    }
    add_runs(out, measure);
    buf_add_char(out, '}');
}

static void add_measures(struct buf *out, const struct measures *measures) {
    text_add_key(out, "measures");
    buf_add_char(out, '{');
    for (size_t i = 0; i < measures->n; i++) {
        buf_add_str(out, i == 0 ? "\n    " : ",\n    ");
        text_add_string(out, measures->items[i].name);
        buf_add_char(out, ':');
        add_measure(out, &measures->items[i]);
    }
    buf_add_char(out, '}');
}

/* ---- targets ---- */

static void add_run_measures(struct buf *out, const struct measures *measures, unsigned number) {
    text_add_key(out, "measures");
    buf_add_char(out, '{');
    for (size_t i = 0; i < measures->n; i++) {
        const struct measure *measure = &measures->items[i];
        for (size_t j = 0; j < measure->n_runs; j++) {
            if (measure->run_numbers[j] == number) {
                text_add_number_of(out, measure->name, measure->runs[j]);
            }
        }
    }
    buf_add_char(out, '}');
}

static void add_run(struct buf *out, const struct result *result, const struct profile_run *run) {
    static const char *const copied[] = {"wall_seconds", "exit",   "signal",
                                         "timed_out",    "error",  "stopped_by",
                                         "frames",       "output", "peak_memory_source"};
    buf_add_char(out, '{');
    text_add_number_of(out, "run", run->number);
    text_add_number_of(out, "began", run->began_at);
    text_add_bool_of(out, "warmup", !run->measured);
    text_add_bool_of(out, "ended", run->end != NULL);
    text_add_bool_of(out, "failed", profile_run_failed(run));
    for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
        add_copy(out, copied[i], run->end);
    }
    text_add_number_of(out, "samples", (double)run->n_samples);
    text_add_number_of(out, "lost", (double)run->n_lost);
    add_run_measures(out, &result->measures, run->number);
    buf_add_char(out, '}');
}

static void add_gate(struct buf *out, const struct gate *gate) {
    static const char *const verdicts[] = {
        [GATE_OK] = "true", [GATE_FAILED] = "false", [GATE_SKIPPED] = "null"};
    buf_add_char(out, '{');
    text_add_text_of(out, "metric", gate->metric);
    text_add_text_of(out, "kind", gate_kind_name(gate->kind));
    text_add_number_of(out, "limit", gate->limit);
    text_add_number_of(out, "value", gate->value);
    text_add_key(out, "ok");
    buf_add_str(out, verdicts[gate->state]);
    buf_add_char(out, '}');
}

static void add_unstable(struct buf *out, const struct measures *measures) {
    text_add_key(out, "unstable");
    buf_add_char(out, '[');
    size_t n = 0;
    for (size_t i = 0; i < measures->n; i++) {
        if (measures->items[i].unstable) {
            buf_add_str(out, n++ > 0 ? "," : "");
            text_add_string(out, measures->items[i].name);
        }
    }
    buf_add_char(out, ']');
}

static void add_target(struct buf *out, const struct result *result) {
    static const char *const copied[] = {"of",      "args",    "command", "knobs",
                                         "timeout", "repeats", "warmup"};
    const struct profile_target *target = result->target;
    buf_add_char(out, '{');
    text_add_text_of(out, "target", target->name);
    for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
        add_copy(out, copied[i], target->object);
    }
    text_add_key(out, "runs");
    buf_add_char(out, '[');
    for (size_t i = 0; i < target->n_runs; i++) {
        buf_add_str(out, i == 0 ? "\n    " : ",\n    ");
        add_run(out, result, &target->runs[i]);
    }
    buf_add_char(out, ']');
    add_unstable(out, &result->measures);
    add_measures(out, &result->measures);
    text_add_key(out, "gates");
    buf_add_char(out, '[');
    for (size_t i = 0; i < result->n_gates; i++) {
        buf_add_str(out, i > 0 ? "," : "");
        add_gate(out, &result->gates[i]);
    }
    buf_add_str(out, "]}");
}

/* ---- summary.json ---- */

static void add_sweep_row(struct buf *out, const struct result *result, const json_t *knobs) {
    buf_add_char(out, '{');
    text_add_text_of(out, "target", result->target->name);
    text_add_key(out, "knobs");
    add_value(out, knobs);
    text_add_key(out, "measures");
    buf_add_char(out, '{');
    for (size_t i = 0; i < result->measures.n; i++) {
        const struct measure *measure = &result->measures.items[i];
        if (isfinite(measure->mean)) {
            text_add_number_of(out, measure->name, measure->mean);
        }
    }
    buf_add_str(out, "}}");
}

static void add_sweep(struct buf *out, const struct results *results) {
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++) {
        const json_t *knobs = json_object_get(results->items[i].target->object, "knobs");
        if (json_object_size(knobs) > 0) {
            if (n++ == 0) {
                text_add_key(out, "sweep");
                buf_add_char(out, '[');
            }
            buf_add_str(out, n == 1 ? "\n    " : ",\n    ");
            add_sweep_row(out, &results->items[i], knobs);
        }
    }
    if (n > 0) {
        buf_add_char(out, ']');
    }
}

void summary_write(const struct results *results, struct buf *out) {
    const struct profile *profile = results->profile;
    static const char *const copied[] = {"waap", "began", "application", "environment", "settings"};
    buf_add_char(out, '{');
    text_add_text_of(out, "format", "waap-summary/1");
    for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
        add_copy(out, copied[i], profile->run);
    }
    text_add_bool_of(out, "complete", profile->finished && !profile->interrupted);
    text_add_number_of(out, "samples", (double)profile->n_samples);
    text_add_key(out, "targets");
    buf_add_char(out, '[');
    for (size_t i = 0; i < results->n; i++) {
        buf_add_str(out, i == 0 ? "\n" : ",\n");
        add_target(out, &results->items[i]);
    }
    buf_add_char(out, ']');
    add_copy(out, "gates", profile->run);
    add_sweep(out, results);
    buf_add_str(out, "}\n");
}
