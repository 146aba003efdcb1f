#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "profiler/compare/compare.h"

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

static int parse(struct compare_side *side, const char *text, size_t len, struct error *err) {
    json_error_t fault;
    side->summary = json_loadb(text, len, 0, &fault);
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

int compare_side_parse(const char *name, const char *text, size_t len,
                       struct compare_side *ret_side, struct error *err) {
    struct compare_side side = {.name = name};
    int r = parse(&side, text, len, err);
    if (r < 0) {
        compare_side_finish(&side);
        return r;
    }
    *ret_side = side;
    return 0;
}

void compare_side_finish(struct compare_side *side) {
    for (size_t i = 0; i < side->n_targets; i++) {
        measures_finish(&side->targets[i].measures);
    }
    free(side->targets);
    json_decref(side->summary);
    *side = (struct compare_side){0};
}
