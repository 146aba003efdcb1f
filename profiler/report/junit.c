#include "profiler/report/pages.h"

#include <jansson.h>
#include <math.h>

#include "profiler/analysis/report_text.h"

static void add_attribute(struct buf *out, const char *name, const char *text) {
    buf_printf(out, " %s=\"", name);
    text_add_escaped(out, text);
    buf_add_char(out, '"');
}

static void add_seconds(struct buf *out, double seconds) {
    buf_printf(out, " time=\"%.3f\"", isfinite(seconds) ? seconds : 0);
}

static double wall_of(const struct result *result) {
    double sum = 0;
    for (size_t i = 0; i < result->target->n_runs; i++) {
        sum += json_number_value(json_object_get(result->target->runs[i].end, "wall_seconds"));
    }
    return sum;
}

static void begin_case(struct buf *out, const struct results *results, const struct result *result,
                       const char *name) {
    struct buf class CLEANUP_BUF = {0};
    buf_printf(&class, "%s.%s", results_text(results, "application", "name"), result->target->name);
    buf_add_str(out, "    <testcase");
    add_attribute(out, "classname", buf_str(&class));
    add_attribute(out, "name", name);
    add_seconds(out, wall_of(result));
    buf_add_str(out, ">\n");
}

static void add_run_fault(struct buf *out, const struct profile_run *run) {
    const char *error = json_string_value(json_object_get(run->end, "error"));
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "run %u: ", run->number);
    if (error != NULL) {
        buf_add_str(&text, error);
    } else {
        json_int_t signal = json_integer_value(json_object_get(run->end, "signal"));
        buf_printf(&text, signal != 0 ? "ended by signal %lld" : "ended with exit code %lld",
                   signal != 0 ? (long long)signal
                               : (long long)json_integer_value(json_object_get(run->end, "exit")));
    }
    buf_add_str(out, "      <error");
    add_attribute(out, "message", buf_str(&text));
    buf_add_str(out, "/>\n");
}

static void add_runs_case(struct buf *out, const struct results *results,
                          const struct result *result) {
    begin_case(out, results, result, "runs");
    for (size_t i = 0; i < result->target->n_runs; i++) {
        if (profile_run_failed(&result->target->runs[i])) {
            add_run_fault(out, &result->target->runs[i]);
            break; /* a case has one outcome */
        }
    }
    if (result->n_measured == 0 && result->n_failed_runs == 0) {
        buf_add_str(out, "      <skipped message=\"no run was measured\"/>\n");
    }
    buf_add_str(out, "    </testcase>\n");
}

static void add_gate_text(struct buf *out, const struct gate *gate) {
    buf_printf(out, "%s is ", gate->metric);
    text_add_human(out, gate->value, gate->unit);
    buf_printf(out, ", %s is ", gate_kind_name(gate->kind));
    text_add_human(out, gate->limit, gate->unit);
}

static void add_gate_case(struct buf *out, const struct results *results,
                          const struct result *result, const struct gate *gate) {
    struct buf name CLEANUP_BUF = {0}, text CLEANUP_BUF = {0};
    buf_printf(&name, "%s %s %.12g", gate->metric, gate_kind_name(gate->kind), gate->limit);
    begin_case(out, results, result, buf_str(&name));
    if (gate->state == GATE_SKIPPED) {
        buf_add_str(out,
                    "      <skipped message=\"needs a baseline: waap compare A B --gate\"/>\n");
    } else if (gate->state == GATE_FAILED) {
        if (isnan(gate->value)) {
            gate_explain(gate, &result->measures, &text);
        } else {
            add_gate_text(&text, gate);
        }
        buf_add_str(out, "      <failure");
        add_attribute(out, "message", buf_str(&text));
        buf_add_str(out, "/>\n");
    }
    buf_add_str(out, "    </testcase>\n");
}

static void add_suite(struct buf *out, const struct results *results, const struct result *result) {
    size_t failed = 0, skipped = result->n_measured == 0 && result->n_failed_runs == 0;
    for (size_t i = 0; i < result->n_gates; i++) {
        failed += result->gates[i].state == GATE_FAILED;
        skipped += result->gates[i].state == GATE_SKIPPED;
    }
    buf_add_str(out, "  <testsuite");
    add_attribute(out, "name", result->target->name);
    buf_printf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%d\" skipped=\"%zu\"",
               result->n_gates + 1, failed, result->n_failed_runs > 0, skipped);
    add_seconds(out, wall_of(result));
    buf_add_str(out, ">\n");
    add_runs_case(out, results, result);
    for (size_t i = 0; i < result->n_gates; i++) {
        add_gate_case(out, results, result, &result->gates[i]);
    }
    buf_add_str(out, "  </testsuite>\n");
}

void report_junit_write(const struct results *results, struct buf *out) {
    buf_add_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (size_t i = 0; i < results->n; i++) {
        add_suite(out, results, &results->items[i]);
    }
    buf_add_str(out, "</testsuites>\n");
}
