#include "profiler/analysis/results.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "exporter/core/file.h"
#include "exporter/core/json_write.h"
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

static void add_value(struct buf *out, const char *key, const json_t *value) {
    char *text CLEANUP_FREE =
        json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    json_put(out, key, "%s", text != NULL ? text : "null");
}

/* Copies members of a line of the record, if they are there. */
static void add_copies(struct buf *out, const char *const *keys, size_t n, const json_t *object) {
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_object_get(object, keys[i]);
        if (value != NULL) {
            add_value(out, keys[i], value);
        }
    }
}

/* Begins the element `i` of an array or object on a line of its own. */
static void begin_line(struct buf *out, size_t i, const char *indent) {
    buf_printf(out, "%s\n%s", i > 0 ? "," : "", indent);
}

/* ---- measures ---- */

static void add_interval(struct buf *out, const struct measure *measure) {
    if (measure->n_runs < 2) {
        return;
    }
    struct moments moments = moments_of(measure->runs, measure->n_runs);
    double half = moments_ci95(&moments);
    json_open(out, "ci95", '[');
    text_put_number(out, NULL, moments.mean - half);
    text_put_number(out, NULL, moments.mean + half);
    json_close(out, ']');
    text_put_number(out, "cv", moments_cv(&moments));
}

static void add_measure(struct buf *out, const struct measure *measure) {
    json_open(out, measure->name, '{');
    if (measure->unit[0] != '\0') {
        json_put_string(out, "unit", measure->unit);
    }
    if (better_names[measure->better] != NULL) {
        json_put_string(out, "better", better_names[measure->better]);
    }
    text_put_number(out, "n", measure->n);
    for (size_t i = 0; i < N_MEASURE_STATS; i++) {
        if (isfinite(measure->stats[i])) {
            text_put_number(out, measure_stats[i], measure->stats[i]);
        }
    }
    add_interval(out, measure);
    if (measure->unstable) {
        json_put_bool(out, "unstable", true);
    }
    json_open(out, "runs", '[');
    for (size_t i = 0; i < measure->n_runs; i++) {
        text_put_number(out, NULL, measure->runs[i]);
    }
    json_close(out, ']');
    json_close(out, '}');
}

static void add_measures(struct buf *out, const struct measures *measures) {
    json_open(out, "measures", '{');
    for (size_t i = 0; i < measures->n; i++) {
        begin_line(out, i, "    ");
        add_measure(out, &measures->items[i]);
    }
    json_close(out, '}');
}

/* ---- targets ---- */

static void add_run_measures(struct buf *out, const struct measures *measures, unsigned number) {
    json_open(out, "measures", '{');
    for (size_t i = 0; i < measures->n; i++) {
        const struct measure *measure = &measures->items[i];
        for (size_t j = 0; j < measure->n_runs; j++) {
            if (measure->run_numbers[j] == number) {
                text_put_number(out, measure->name, measure->runs[j]);
            }
        }
    }
    json_close(out, '}');
}

static void add_run(struct buf *out, const struct result *result, const struct profile_run *run) {
    static const char *const copied[] = {"wall_seconds", "exit",   "signal",
                                         "timed_out",    "error",  "stopped_by",
                                         "frames",       "output", "peak_memory_source"};
    json_open(out, NULL, '{');
    text_put_number(out, "run", run->number);
    text_put_number(out, "began", run->began_at);
    json_put_bool(out, "warmup", !run->measured);
    json_put_bool(out, "ended", run->end != NULL);
    json_put_bool(out, "failed", profile_run_failed(run));
    add_copies(out, copied, ARRAY_LEN(copied), run->end);
    text_put_number(out, "samples", (double)run->n_samples);
    text_put_number(out, "lost", (double)run->n_lost);
    add_run_measures(out, &result->measures, run->number);
    json_close(out, '}');
}

static void add_gate(struct buf *out, const struct gate *gate) {
    static const char *const verdicts[] = {
        [GATE_OK] = "true", [GATE_FAILED] = "false", [GATE_SKIPPED] = "null"};
    json_open(out, NULL, '{');
    json_put_string(out, "metric", gate->metric);
    json_put_string(out, "kind", gate_kind_name(gate->kind));
    text_put_number(out, "limit", gate->limit);
    text_put_number(out, "value", gate->value);
    json_put(out, "ok", "%s", verdicts[gate->state]);
    json_close(out, '}');
}

static void add_target(struct buf *out, const struct result *result) {
    static const char *const copied[] = {"of",      "args",    "command", "knobs",
                                         "timeout", "repeats", "warmup"};
    const struct profile_target *target = result->target;
    json_open(out, NULL, '{');
    json_put_string(out, "target", target->name);
    add_copies(out, copied, ARRAY_LEN(copied), target->object);
    json_open(out, "runs", '[');
    for (size_t i = 0; i < target->n_runs; i++) {
        begin_line(out, i, "    ");
        add_run(out, result, &target->runs[i]);
    }
    json_close(out, ']');
    json_open(out, "unstable", '[');
    for (size_t i = 0; i < result->measures.n; i++) {
        if (result->measures.items[i].unstable) {
            json_put_string(out, NULL, result->measures.items[i].name);
        }
    }
    json_close(out, ']');
    add_measures(out, &result->measures);
    json_open(out, "gates", '[');
    for (size_t i = 0; i < result->n_gates; i++) {
        add_gate(out, &result->gates[i]);
    }
    json_close(out, ']');
    json_close(out, '}');
}

/* ---- summary.json ---- */

static void add_sweep_row(struct buf *out, const struct result *result, const json_t *knobs) {
    json_open(out, NULL, '{');
    json_put_string(out, "target", result->target->name);
    add_value(out, "knobs", knobs);
    json_open(out, "measures", '{');
    for (size_t i = 0; i < result->measures.n; i++) {
        const struct measure *measure = &result->measures.items[i];
        if (isfinite(measure->mean)) {
            text_put_number(out, measure->name, measure->mean);
        }
    }
    json_close(out, '}');
    json_close(out, '}');
}

static void add_sweep(struct buf *out, const struct results *results) {
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++) {
        const json_t *knobs = json_object_get(results->items[i].target->object, "knobs");
        if (json_object_size(knobs) > 0) {
            if (n == 0) {
                json_open(out, "sweep", '[');
            }
            begin_line(out, n++, "    ");
            add_sweep_row(out, &results->items[i], knobs);
        }
    }
    if (n > 0) {
        json_close(out, ']');
    }
}

void summary_write(const struct results *results, struct buf *out) {
    const struct profile *profile = results->profile;
    static const char *const copied[] = {"waap", "began", "application", "environment", "settings"};
    json_open(out, NULL, '{');
    json_put_string(out, "format", "waap-summary/1");
    add_copies(out, copied, ARRAY_LEN(copied), profile->run);
    json_put_bool(out, "complete", profile->finished && !profile->interrupted);
    text_put_number(out, "samples", (double)profile->n_samples);
    json_open(out, "targets", '[');
    for (size_t i = 0; i < results->n; i++) {
        begin_line(out, i, "");
        add_target(out, &results->items[i]);
    }
    json_close(out, ']');
    add_copies(out, (const char *const[]){"gates"}, 1, profile->run);
    add_sweep(out, results);
    buf_add_str(out, "}\n");
}
