#include "profiler/compare/compare.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "profiler/analysis/report_text.h"

/* ---- one side ---- */

static double number_or_nan(const json_t *value) {
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void add_measure(struct measures *measures, const char *name, const json_t *object) {
    const char *unit = json_string_value(json_object_get(object, "unit"));
    struct measure *measure =
        measures_add(measures, name, unit != NULL ? unit : "", BETTER_NEITHER);
    const char *better = json_string_value(json_object_get(object, "better"));
    for (int i = BETTER_HIGHER; better != NULL && i <= BETTER_LOWER; i++) {
        measure->better = strcmp(better, better_names[i]) == 0 ? (enum better)i : measure->better;
    }
    measure->n = json_number_value(json_object_get(object, "n"));
    for (size_t i = 0; i < N_MEASURE_STATS; i++) {
        measure->stats[i] = number_or_nan(json_object_get(object, measure_stats[i]));
    }
    const json_t *runs = json_object_get(object, "runs");
    for (size_t i = 0; i < json_array_size(runs); i++) {
        measure_add_run(measure, (unsigned)i + 1, number_or_nan(json_array_get(runs, i)));
    }
}

static size_t count_failed(const json_t *runs) {
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        n += json_is_true(json_object_get(json_array_get(runs, i), "failed"));
    }
    return n;
}

static int add_target(struct compare_side *side, const json_t *object, struct error *err) {
    struct compare_target *target = &side->targets[side->n_targets];
    target->name = json_string_value(json_object_get(object, "target"));
    target->of = json_string_value(json_object_get(object, "of"));
    if (target->name == NULL) {
        return error_set(err, -EINVAL, "%s: a target without a name", side->name);
    }
    side->n_targets++;
    side->n_failed_runs += count_failed(json_object_get(object, "runs"));
    const char *name;
    json_t *measure;
    json_object_foreach(json_object_get(object, "measures"), name, measure) {
        add_measure(&target->measures, name, measure);
    }
    return 0;
}

int compare_side_parse(const char *name, const char *text, size_t len, struct compare_side *side,
                       struct error *err) {
    json_error_t fault;
    *side = (struct compare_side){.name = name, .summary = json_loadb(text, len, 0, &fault)};
    if (side->summary == NULL) {
        return error_set(err, -EINVAL, "%s: line %d: %s", side->name, fault.line, fault.text);
    }
    const char *format = json_string_value(json_object_get(side->summary, "format"));
    if (format == NULL || strcmp(format, "waap-summary/1") != 0) {
        return error_set(err, -EINVAL, "%s: not a summary of waap", side->name);
    }
    const json_t *targets = json_object_get(side->summary, "targets");
    side->targets = mem_zalloc(json_array_size(targets), sizeof(*side->targets));
    int r = 0;
    for (size_t i = 0; i < json_array_size(targets) && r == 0; i++) {
        r = add_target(side, json_array_get(targets, i), err);
    }
    return r;
}

static void finish_side(struct compare_side *side) {
    for (size_t i = 0; i < side->n_targets; i++) {
        measures_finish(&side->targets[i].measures);
    }
    free(side->targets);
    json_decref(side->summary);
}

/* ---- two sides ---- */

/* The level of significance. It takes at least four runs of each side to reach it. */
static const double max_p = 0.05;
enum { ENOUGH_RUNS = 4 };

static const struct compare_target *find_target(const struct compare_side *side, const char *name) {
    for (size_t i = 0; i < side->n_targets; i++) {
        if (strcmp(side->targets[i].name, name) == 0) {
            return &side->targets[i];
        }
    }
    return NULL;
}

/* ---- measures ---- */

static enum compare_change change_of(const struct compare_row *row, double threshold) {
    if (!(fabs(row->change) >= threshold)) {
        return CHANGE_NONE;
    }
    if (row->a->n_runs < ENOUGH_RUNS || row->b->n_runs < ENOUGH_RUNS) {
        return CHANGE_UNCLEAR;
    }
    if (row->p >= max_p) {
        return CHANGE_NONE;
    }
    if (row->b->better == BETTER_NEITHER) {
        return CHANGE_OTHER;
    }
    return (row->change > 0) == (row->b->better == BETTER_HIGHER) ? CHANGE_BETTER : CHANGE_WORSE;
}

/* From nothing to something is an infinite change. */
static double relative(double from, double to) {
    return from == to ? 0 : from == 0 ? copysign(INFINITY, to) : (to - from) / fabs(from);
}

static void add_rows(struct comparison *comparison, const struct compare_target *a,
                     const struct compare_target *b) {
    for (size_t i = 0; i < b->measures.n; i++) {
        const struct measure *after = &b->measures.items[i];
        const struct measure *before = measures_find(&a->measures, after->name);
        if (before == NULL || !isfinite(before->mean) || !isfinite(after->mean)) {
            continue;
        }
        ARRAY_GROW(&comparison->rows, &comparison->cap_rows, comparison->n_rows + 1);
        struct compare_row *row = &comparison->rows[comparison->n_rows++];
        *row = (struct compare_row){
            .target = b->name,
            .a = before,
            .b = after,
            .change = relative(before->mean, after->mean),
            .p = statistics_mann_whitney(before->runs, before->n_runs, after->runs, after->n_runs),
        };
        row->kind = change_of(row, comparison->threshold);
    }
}

/* ---- what one side lacks ---- */

static void add_absence(struct comparison *comparison, const char *target,
                        const struct measure *measure, bool lost) {
    ARRAY_GROW(&comparison->absences, &comparison->cap_absences, comparison->n_absences + 1);
    comparison->absences[comparison->n_absences++] =
        (struct compare_absence){target, measure, lost};
}

/* The targets and measures of one side that the other lacks. */
static void add_absent(struct comparison *comparison, const struct compare_side *has,
                       const struct compare_side *lacks, bool lost) {
    for (size_t i = 0; i < has->n_targets; i++) {
        const struct compare_target *target = &has->targets[i];
        const struct compare_target *other = find_target(lacks, target->name);
        if (other == NULL) {
            add_absence(comparison, target->name, NULL, lost);
        }
        for (size_t j = 0; other != NULL && j < target->measures.n; j++) {
            const struct measure *measure = &target->measures.items[j];
            const struct measure *twin = measures_find(&other->measures, measure->name);
            if (isfinite(measure->mean) && (twin == NULL || !isfinite(twin->mean))) {
                add_absence(comparison, target->name, measure, lost);
            }
        }
    }
}

/* ---- gates ---- */

/* Whether none of the measures that a gate matches differs significantly between A and B. */
static bool is_chance(const struct comparison *comparison, const char *target,
                      const struct gate *gate) {
    size_t n = 0, by_chance = 0;
    for (size_t i = 0; i < comparison->n_rows; i++) {
        const struct compare_row *row = &comparison->rows[i];
        enum measure_stat stat;
        if (strcmp(row->target, target) == 0 && measure_matches(row->b, gate->metric, &stat)) {
            n++;
            by_chance +=
                row->p >= max_p && row->a->n_runs >= ENOUGH_RUNS && row->b->n_runs >= ENOUGH_RUNS;
        }
    }
    return n > 0 && by_chance == n;
}

/* A target that A does not have is checked by the gates that need no baseline. */
static void add_gates(struct comparison *comparison, const struct compare_target *a,
                      const struct compare_target *b) {
    size_t n;
    struct gate *gates CLEANUP_FREE =
        gates_judge(json_object_get(comparison->b.summary, "gates"), b->name, b->of, &b->measures,
                    a != NULL ? &a->measures : NULL, &n);
    for (size_t i = 0; i < n; i++) {
        if (a == NULL && gates[i].state == GATE_SKIPPED) {
            continue;
        }
        struct compare_gate gate = {.target = b->name, .gate = gates[i]};
        gate.by_chance = gates[i].state == GATE_FAILED && gate_is_relative(&gates[i]) &&
                         is_chance(comparison, b->name, &gates[i]);
        ARRAY_GROW(&comparison->gates, &comparison->cap_gates, comparison->n_gates + 1);
        comparison->gates[comparison->n_gates++] = gate;
    }
}

/* ---- environments ---- */

static void add_difference(struct comparison *comparison, const char *key, const json_t *a,
                           const json_t *b) {
    ARRAY_GROW(&comparison->differences, &comparison->cap_differences,
               comparison->n_differences + 1);
    comparison->differences[comparison->n_differences++] = (struct compare_difference){
        .key = key,
        .a = text_of_json(a),
        .b = text_of_json(b),
        /* Others, such as a commit or an image, are what the user compares. */
        .matters = strcmp(key, "board") == 0 || strcmp(key, "power_mode") == 0,
    };
}

/* The reason for having no cgroup contains a pid, so it always differs; `launch` shows the fact. */
static bool is_comparable(const char *key) {
    return strcmp(key, "no_cgroup") != 0;
}

static void add_differences(struct comparison *comparison) {
    json_t *a = json_object_get(comparison->a.summary, "environment");
    json_t *b = json_object_get(comparison->b.summary, "environment");
    const char *key;
    json_t *value;
    json_object_foreach(b, key, value) {
        const json_t *before = json_object_get(a, key);
        if (is_comparable(key) && (before == NULL || !json_equal(before, value))) {
            add_difference(comparison, key, before, value);
        }
    }
    json_object_foreach(a, key, value) {
        if (is_comparable(key) && json_object_get(b, key) == NULL) {
            add_difference(comparison, key, value, NULL);
        }
    }
}

/* ---- the whole ---- */

int compare_make(struct comparison *comparison, struct error *err) {
    add_differences(comparison);
    for (size_t i = 0; i < comparison->b.n_targets; i++) {
        const struct compare_target *b = &comparison->b.targets[i];
        const struct compare_target *a = find_target(&comparison->a, b->name);
        if (a != NULL) {
            comparison->n_targets++;
            add_rows(comparison, a, b);
        }
        add_gates(comparison, a, b);
    }
    if (comparison->n_targets == 0) {
        return error_set(err, -ENODATA, "%s and %s have no target in common", comparison->a.name,
                         comparison->b.name);
    }
    add_absent(comparison, &comparison->a, &comparison->b, true);
    add_absent(comparison, &comparison->b, &comparison->a, false);
    return 0;
}

void comparison_finish(struct comparison *comparison) {
    for (size_t i = 0; i < comparison->n_differences; i++) {
        free(comparison->differences[i].a);
        free(comparison->differences[i].b);
    }
    free(comparison->differences);
    free(comparison->absences);
    free(comparison->rows);
    free(comparison->gates);
    finish_side(&comparison->a);
    finish_side(&comparison->b);
    *comparison = (struct comparison){0};
}

static bool is_worse(const struct comparison *comparison) {
    bool worse = false;
    for (size_t i = 0; i < comparison->n_gates; i++) {
        const struct compare_gate *gate = &comparison->gates[i];
        worse = worse || (gate->gate.state == GATE_FAILED && !gate->by_chance);
    }
    for (size_t i = 0; i < comparison->n_rows && comparison->n_gates == 0; i++) {
        worse = worse || comparison->rows[i].kind == CHANGE_WORSE;
    }
    for (size_t i = 0; i < comparison->n_absences; i++) {
        const struct compare_absence *absence = &comparison->absences[i];
        bool counts = absence->measure == NULL ||
                      (comparison->n_gates == 0 && absence->measure->better != BETTER_NEITHER);
        worse = worse || (absence->lost && counts);
    }
    return worse;
}

int compare_exit_code(const struct comparison *comparison) {
    for (size_t i = 0; i < comparison->n_differences; i++) {
        if (comparison->differences[i].matters) {
            return 4;
        }
    }
    return comparison->b.n_failed_runs > 0 ? 3 : is_worse(comparison);
}
