#include "profiler/report/pages.h"

#include <jansson.h>
#include <math.h>

#include "profiler/analysis/report_text.h"

static double wall_of(const struct profile_target *target) {
    double sum = 0;
    for (size_t i = 0; i < target->n_runs; i++) {
        sum += json_number_value(json_object_get(target->runs[i].end, "wall_seconds"));
    }
    return isfinite(sum) ? sum : 0;
}

static void begin_case(struct buf *out, const struct profile *profile,
                       const struct profile_target *target, const char *name) {
    text_markup(out, "    <testcase classname=\"%s.%s\" name=\"%s\" time=\"%.3f\">\n",
                profile_text(profile, "application", "name"), target->name, name, wall_of(target));
}

static void add_runs_case(struct buf *out, const struct profile *profile,
                          const struct profile_target *target) {
    struct buf outcome CLEANUP_BUF = {0};
    begin_case(out, profile, target, "runs");
    for (size_t i = 0; i < target->n_runs; i++) {
        if (profile_run_failed(&target->runs[i])) {
            profile_run_outcome(&target->runs[i], &outcome);
            text_markup(out, "      <error message=\"run %u: %s\"/>\n", target->runs[i].number,
                        buf_str(&outcome));
            break; /* a case has one outcome */
        }
    }
    if (target->n_measured == 0 && target->n_failed_runs == 0) {
        buf_add_str(out, "      <skipped message=\"no run was measured\"/>\n");
    }
    buf_add_str(out, "    </testcase>\n");
}

static void add_gate_case(struct buf *out, const struct profile *profile,
                          const struct profile_target *target, const struct gate *gate) {
    struct buf name CLEANUP_BUF = {0}, text CLEANUP_BUF = {0};
    buf_printf(&name, "%s %s %.12g", gate->metric, gate_kinds[gate->kind], gate->limit);
    begin_case(out, profile, target, buf_str(&name));
    if (gate->state == GATE_SKIPPED) {
        buf_add_str(out,
                    "      <skipped message=\"needs a baseline: waap compare A B --gate\"/>\n");
    } else if (gate->state == GATE_FAILED) {
        gate_explain(gate, &target->measures, &text);
        text_markup(out, "      <failure message=\"%s\"/>\n", buf_str(&text));
    }
    buf_add_str(out, "    </testcase>\n");
}

static void add_suite(struct buf *out, const struct profile *profile,
                      const struct profile_target *target) {
    size_t failed = 0, skipped = target->n_measured == 0 && target->n_failed_runs == 0;
    for (size_t i = 0; i < target->n_gates; i++) {
        failed += target->gates[i].state == GATE_FAILED;
        skipped += target->gates[i].state == GATE_SKIPPED;
    }
    text_markup(out,
                "  <testsuite name=\"%s\" tests=\"%zu\" failures=\"%zu\" errors=\"%d\" "
                "skipped=\"%zu\" time=\"%.3f\">\n",
                target->name, target->n_gates + 1, failed, target->n_failed_runs > 0, skipped,
                wall_of(target));
    add_runs_case(out, profile, target);
    for (size_t i = 0; i < target->n_gates; i++) {
        add_gate_case(out, profile, target, &target->gates[i]);
    }
    buf_add_str(out, "  </testsuite>\n");
}

void report_junit_write(const struct profile *profile, struct buf *out) {
    buf_add_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (size_t i = 0; i < profile->n_targets; i++) {
        add_suite(out, profile, &profile->targets[i]);
    }
    buf_add_str(out, "</testsuites>\n");
}
