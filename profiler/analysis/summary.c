#include "profiler/analysis/profile.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "exporter/core/json_write.h"
#include "profiler/analysis/report_text.h"

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

static void put_if_known(struct buf *out, const char *key, double value) {
    if (isfinite(value)) {
        json_put_number(out, key, value);
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
        put_if_known(out, measure_stats[i], measure->stats[i]);
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
        put_if_known(out, measures->items[i].name, measure_of_run(&measures->items[i], number));
    }
    json_close(out, '}');
}

static void add_run(struct buf *out, const struct profile_target *target,
                    const struct profile_run *run) {
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
    add_run_measures(out, &target->measures, run->number);
    json_close(out, '}');
}

static void add_gate(struct buf *out, const struct gate *gate) {
    static const char *const verdicts[] = {
        [GATE_OK] = "true", [GATE_FAILED] = "false", [GATE_SKIPPED] = "null"};
    json_open(out, NULL, '{');
    json_put_string(out, "metric", gate->metric);
    json_put_string(out, "kind", gate_kinds[gate->kind]);
    text_put_number(out, "limit", gate->limit);
    text_put_number(out, "value", gate->value);
    json_put(out, "ok", "%s", verdicts[gate->state]);
    json_close(out, '}');
}

static void add_target(struct buf *out, const struct profile_target *target) {
    static const char *const copied[] = {"of",      "args",    "command", "knobs",
                                         "timeout", "repeats", "warmup"};
    json_open(out, NULL, '{');
    json_put_string(out, "target", target->name);
    add_copies(out, copied, ARRAY_LEN(copied), target->object);
    json_open(out, "runs", '[');
    for (size_t i = 0; i < target->n_runs; i++) {
        begin_line(out, i, "    ");
        add_run(out, target, &target->runs[i]);
    }
    json_close(out, ']');
    json_open(out, "unstable", '[');
    for (size_t i = 0; i < target->measures.n; i++) {
        if (target->measures.items[i].unstable) {
            json_put_string(out, NULL, target->measures.items[i].name);
        }
    }
    json_close(out, ']');
    add_measures(out, &target->measures);
    json_open(out, "gates", '[');
    for (size_t i = 0; i < target->n_gates; i++) {
        add_gate(out, &target->gates[i]);
    }
    json_close(out, ']');
    json_close(out, '}');
}

/* ---- summary.json ---- */

static void add_sweep_row(struct buf *out, const struct profile_target *target,
                          const json_t *knobs) {
    json_open(out, NULL, '{');
    json_put_string(out, "target", target->name);
    add_value(out, "knobs", knobs);
    json_open(out, "measures", '{');
    for (size_t i = 0; i < target->measures.n; i++) {
        put_if_known(out, target->measures.items[i].name, target->measures.items[i].mean);
    }
    json_close(out, '}');
    json_close(out, '}');
}

static void add_sweep(struct buf *out, const struct profile *profile) {
    size_t n = 0;
    for (size_t i = 0; i < profile->n_targets; i++) {
        const json_t *knobs = json_object_get(profile->targets[i].object, "knobs");
        if (json_object_size(knobs) > 0) {
            if (n == 0) {
                json_open(out, "sweep", '[');
            }
            begin_line(out, n++, "    ");
            add_sweep_row(out, &profile->targets[i], knobs);
        }
    }
    if (n > 0) {
        json_close(out, ']');
    }
}

void profile_write_summary(const struct profile *profile, struct buf *out) {
    static const char *const copied[] = {"waap", "began", "application", "environment", "settings"};
    json_open(out, NULL, '{');
    json_put_string(out, "format", "waap-summary/1");
    add_copies(out, copied, ARRAY_LEN(copied), profile->run);
    json_put_bool(out, "complete", profile->finished && !profile->interrupted);
    text_put_number(out, "samples", (double)profile->n_samples);
    json_open(out, "targets", '[');
    for (size_t i = 0; i < profile->n_targets; i++) {
        begin_line(out, i, "");
        add_target(out, &profile->targets[i]);
    }
    json_close(out, ']');
    add_copies(out, (const char *const[]){"gates"}, 1, profile->run);
    add_sweep(out, profile);
    buf_add_str(out, "}\n");
}
