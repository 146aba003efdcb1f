#include "profiler/report/tables.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "profiler/analysis/report_text.h"

static void add_cell(struct buf *out, const char *class, const char *text) {
    buf_printf(out, "<td%s%s%s>", class[0] != '\0' ? " class=\"" : "", class,
               class[0] != '\0' ? "\"" : "");
    text_add_escaped(out, text);
    buf_add_str(out, "</td>");
}

static void add_value_cell(struct buf *out, double value, const char *unit) {
    buf_add_str(out, "<td class=\"n\">");
    text_add_human(out, value, unit);
    buf_add_str(out, "</td>");
}

/* A title that begins with '#' stands over numbers. */
static void begin_table(struct buf *out, const char *const *titles, size_t n) {
    buf_add_str(out, "<div class=\"wide\"><table><thead><tr>");
    for (size_t i = 0; i < n; i++) {
        bool number = titles[i][0] == '#';
        buf_printf(out, "<th scope=\"col\"%s>%s</th>", number ? " class=\"n\"" : "",
                   titles[i] + number);
    }
    buf_add_str(out, "</tr></thead><tbody>\n");
}

static void end_table(struct buf *out) {
    buf_add_str(out, "</tbody></table></div>\n");
}

/* ---- gates ---- */

static void add_limit(struct buf *out, const struct gate *gate) {
    static const char *const signs[] = {
        [GATE_MAX] = "at most ",
        [GATE_MAX_DECREASE] = "falls by at most ",
        [GATE_MAX_INCREASE] = "grows by at most ",
        [GATE_MIN] = "at least ",
    };
    buf_printf(out, "<td>%s", signs[gate->kind]);
    text_add_human(out, gate->limit, gate_is_relative(gate) ? "ratio" : gate->unit);
    buf_add_str(out, "</td>");
}

static void add_gate(struct buf *out, const char *target, const struct gate *gate) {
    static const char *const verdicts[] = {
        [GATE_OK] = "kept", [GATE_FAILED] = "broken", [GATE_SKIPPED] = "needs a baseline"};
    static const char *const classes[] = {
        [GATE_OK] = "good", [GATE_FAILED] = "bad", [GATE_SKIPPED] = "quiet"};
    buf_add_str(out, "<tr>");
    add_cell(out, classes[gate->state], verdicts[gate->state]);
    add_cell(out, "", target);
    add_cell(out, "", gate->metric);
    if (isnan(gate->value)) {
        add_cell(out, "n", "not measured");
    } else {
        add_value_cell(out, gate->value, gate->unit);
    }
    add_limit(out, gate);
    buf_add_str(out, "</tr>\n");
}

void report_gates_write(const struct results *results, struct buf *out) {
    static const char *const titles[] = {"Gate", "Target", "Measure", "#Value", "Limit"};
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++) {
        for (size_t j = 0; j < results->items[i].n_gates; j++) {
            if (n++ == 0) {
                buf_add_str(out, "<section id=\"gates\"><h2>Gates</h2>");
                begin_table(out, titles, ARRAY_LEN(titles));
            }
            add_gate(out, results->items[i].target->name, &results->items[i].gates[j]);
        }
    }
    if (n > 0) {
        end_table(out);
        buf_add_str(out, "</section>\n");
    }
}

/* ---- runs ---- */

static void add_outcome(struct buf *out, const struct profile_run *run) {
    const char *error = json_string_value(json_object_get(run->end, "error"));
    const char *by = json_string_value(json_object_get(run->end, "stopped_by"));
    struct buf text CLEANUP_BUF = {0};
    if (run->end == NULL) {
        buf_add_str(&text, "did not end");
    } else if (error != NULL) {
        buf_add_str(&text, error);
    } else if (json_is_true(json_object_get(run->end, "timed_out"))) {
        buf_printf(&text, "time over, %s", by != NULL ? by : "stopped");
    } else if (by != NULL && strcmp(by, "itself") != 0) {
        buf_printf(&text, "stopped by %s", by);
    } else {
        json_int_t signal = json_integer_value(json_object_get(run->end, "signal"));
        json_int_t code = json_integer_value(json_object_get(run->end, "exit"));
        buf_printf(&text, signal != 0 ? "signal %lld" : "exit %lld",
                   (long long)(signal != 0 ? signal : code));
    }
    add_cell(out, profile_run_failed(run) ? "bad" : "", buf_str(&text));
}

static double run_value(const struct measures *measures, const char *name, unsigned number,
                        const char **ret_unit) {
    const struct measure *measure = measures_find(measures, name);
    for (size_t i = 0; measure != NULL && i < measure->n_runs; i++) {
        if (measure->run_numbers[i] == number) {
            *ret_unit = measure->unit;
            return measure->runs[i];
        }
    }
    return NAN;
}

static const struct {
    const char *title, *measure;
} run_columns[] = {
    {"Wall time", "wall.seconds"}, {"fps", "fps"},
    {"CPU", "cpu.percent"},        {"Peak memory", "memory.peak_bytes"},
    {"Energy", "energy.joules"},   {"Energy per frame", "energy_per_frame.joules"},
};

static void add_run(struct buf *out, const struct result *result, const struct profile_run *run) {
    buf_printf(out, "<tr><th scope=\"row\">%u%s</th>", run->number,
               run->measured ? "" : ", warm-up");
    add_outcome(out, run);
    for (size_t i = 0; i < ARRAY_LEN(run_columns); i++) {
        const char *unit = "";
        double value = run_value(&result->measures, run_columns[i].measure, run->number, &unit);
        if (measures_find(&result->measures, run_columns[i].measure) != NULL) {
            add_value_cell(out, run->measured ? value : NAN, unit);
        }
    }
    add_value_cell(out, (double)run->n_lost, "");
    buf_add_str(out, "</tr>\n");
}

void report_runs_write(const struct result *result, struct buf *out) {
    buf_add_str(out, "<div class=\"wide\"><table><thead><tr><th scope=\"col\">Run</th>"
                     "<th scope=\"col\">Outcome</th>");
    for (size_t i = 0; i < ARRAY_LEN(run_columns); i++) {
        if (measures_find(&result->measures, run_columns[i].measure) != NULL) {
            buf_printf(out, "<th scope=\"col\" class=\"n\">%s</th>", run_columns[i].title);
        }
    }
    buf_add_str(out, "<th scope=\"col\" class=\"n\">Lost samples</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < result->target->n_runs; i++) {
        add_run(out, result, &result->target->runs[i]);
    }
    end_table(out);
}

/* ---- measures ---- */

void report_measures_write(const struct result *result, struct buf *out) {
    static const char *const titles[] = {"Measure", "#n",   "#mean",          "#sd",
                                         "#min",    "#p50", "#p90",           "#p95",
                                         "#p99",    "#max", "#runs differ by"};
    begin_table(out, titles, ARRAY_LEN(titles));
    for (size_t i = 0; i < result->measures.n; i++) {
        const struct measure *measure = &result->measures.items[i];
        struct moments moments = moments_of(measure->runs, measure->n_runs);
        buf_add_str(out, "<tr><th scope=\"row\">");
        text_add_escaped(out, measure->name);
        buf_add_str(out, "</th>");
        add_value_cell(out, measure->n, "");
        for (size_t j = 0; j < N_MEASURE_STATS; j++) {
            add_value_cell(out, measure_stat(measure, &measure_stats[j]), measure->unit);
        }
        buf_printf(out, "<td class=\"n%s\">", measure->unsettled ? " bad" : "");
        text_add_human(out, moments.n > 1 ? moments_cv(&moments) : NAN, "ratio");
        buf_add_str(out, "</td></tr>\n");
    }
    end_table(out);
}

/* ---- environment ---- */

/* Nested objects become paths: "clocks.gpu". */
static void add_facts(struct buf *out, const char *path, json_t *object, int depth) {
    enum { MAX_DEPTH = 4 };
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        struct buf name CLEANUP_BUF = {0};
        buf_printf(&name, "%s%s%s", path, path[0] != '\0' ? "." : "", key);
        if (json_is_object(value) && depth < MAX_DEPTH) {
            add_facts(out, buf_str(&name), value, depth + 1);
            continue;
        }
        char *text CLEANUP_FREE = json_is_string(value)
                                      ? NULL
                                      : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        const char *shown = json_is_string(value) ? json_string_value(value) : text;
        buf_add_str(out, "<div><dt>");
        text_add_escaped(out, buf_str(&name));
        buf_add_str(out, "</dt><dd>");
        text_add_escaped(out, shown != NULL ? shown : "");
        buf_add_str(out, "</dd></div>\n");
    }
}

void report_environment_write(const struct results *results, struct buf *out) {
    json_t *run = results->profile->run;
    buf_add_str(out, "<section id=\"environment\"><h2>Environment</h2>\n<dl class=\"facts\">\n");
    add_facts(out, "", json_object_get(run, "environment"), 0);
    add_facts(out, "application", json_object_get(run, "application"), 0);
    add_facts(out, "settings", json_object_get(run, "settings"), 0);
    buf_add_str(out, "</dl></section>\n");
}
