#include "profiler/analysis/results.h"

#include <errno.h>
#include <jansson.h>

#include "exporter/core/file.h"

static int make_result(const struct profile *profile, const struct profile_target *target,
                       struct result *result, struct error *err) {
    result->target = target;
    for (size_t i = 0; i < target->n_runs; i++) {
        result->n_measured += target->runs[i].measured;
        result->n_failed_runs += profile_run_failed(&target->runs[i]);
    }
    int r = measures_make(profile, target, &result->measures, err);
    return r < 0 ? r
                 : gates_judge(json_object_get(profile->run, "gates"), target->name,
                               json_string_value(json_object_get(target->object, "of")),
                               &result->measures, NULL, &result->gates, &result->n_gates, err);
}

/* Hands everything over, so that the source has nothing to free. */
static void results_move(struct results *to, struct results *from) {
    *to = *from;
    *from = (struct results){0};
}

int results_read_record(const char *path, struct results *ret_results, struct error *err) {
    struct results results CLEANUP_RESULTS = {0};
    int r = profile_read(path, &results.profile, err);
    if (r < 0) {
        return r;
    }
    results.n = results.profile->n_targets;
    results.items = calloc(results.n + 1, sizeof(*results.items));
    if (results.items == NULL) {
        results.n = 0;
        return error_set(err, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < results.n && r == 0; i++) {
        r = make_result(results.profile, &results.profile->targets[i], &results.items[i], err);
    }
    if (r < 0) {
        return r;
    }
    results_move(ret_results, &results);
    return 0;
}

int results_read(const char *dir, struct results *ret_results, struct error *err) {
    char *path CLEANUP_FREE = file_path_join(dir, "samples.jsonl");
    return path != NULL ? results_read_record(path, ret_results, err)
                        : error_set(err, -ENOMEM, "out of memory");
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
