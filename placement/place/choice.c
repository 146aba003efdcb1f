#include "placement/place/choice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/json.h"
#include "exporter/core/memory.h"

static const char unknown_device[] = "a kind of device that the predictor was not trained with";

/* The features of a model on a node. */
static void set_features(const struct place_request *request, const struct place_node *node,
                         float features[static N_FEATURES]) {
    memcpy(features, request->features, sizeof(request->features));
    features[FEATURE_LOAD] = (float)node->load;
    features[FEATURE_DISK_USAGE] = (float)node->disk;
    features[FEATURE_DEVICE] = (float)device_of(node->device_model);
}

static bool is_outside(const struct gbt *gbt, size_t feature, float value) {
    const struct gbt_feature *known = &gbt_notes(gbt)->features[feature];
    return value < known->min || value > known->max;
}

static bool is_unknown(const struct gbt *gbt, const struct place_node *node) {
    return is_outside(gbt, FEATURE_DEVICE, (float)device_of(node->device_model));
}

int place_choose(struct gbt *gbt, const struct place_request *request, struct place_nodes *nodes,
                 struct place_choice *ret_choice, struct error *err) {
    float *rows CLEANUP_FREE = mem_zalloc((nodes->n_nodes + 1) * N_FEATURES, sizeof(*rows));
    float *results CLEANUP_FREE = mem_zalloc(nodes->n_nodes + 1, sizeof(*results));
    size_t n_rows = 0;
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        struct place_node *node = &nodes->nodes[i];
        if (node->excluded == NULL && is_unknown(gbt, node) && !place_node_is_measured(node)) {
            node->excluded = unknown_device;
        } else if (node->excluded == NULL) {
            set_features(request, node, &rows[N_FEATURES * n_rows++]);
        }
    }
    int r = gbt_predict(gbt, rows, n_rows, results, err);
    if (r < 0) {
        return r;
    }
    struct place_choice choice = {.best = NULL};
    const struct gbt_notes *notes = gbt_notes(gbt);
    const float *result = results, *row = rows;
    bool all_are_measured = true;
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        struct place_node *node = &nodes->nodes[i];
        if (node->excluded != NULL) {
            continue;
        }
        double seconds = notes->in_seconds ? (double)*result : exp((double)*result);
        bool is_measured = place_node_is_measured(node);
        node->predicted_seconds = is_unknown(gbt, node) ? NAN : seconds;
        node->seconds = is_measured ? node->measured.seconds : seconds;
        all_are_measured = all_are_measured && is_measured;
        if (choice.best == NULL || node->seconds < choice.best->seconds) {
            choice.best = node;
            row = &rows[N_FEATURES * (result - results)];
        }
        result++;
    }
    bool is_inside = true;
    for (size_t i = 0; choice.best != NULL && i < N_FEATURES; i++) {
        choice.outside[i] = is_outside(gbt, i, row[i]);
        is_inside = is_inside && !choice.outside[i];
    }
    choice.is_sure = (is_inside && !notes->simulated && notes->n_rows > 0) || all_are_measured;
    *ret_choice = choice;
    return 0;
}

/* ---- answers ---- */

static void add_features(struct buf *out, const struct place_request *request,
                         const struct place_node *node) {
    float features[N_FEATURES];
    set_features(request, node, features);
    json_open(out, "features", '{');
    for (size_t i = 0; i < N_FEATURES; i++) {
        json_put_number(out, feature_names[i], (double)features[i]);
    }
    json_close(out, '}');
}

static void add_measured(struct buf *out, const struct place_measured *measured) {
    json_open(out, "measured", '{');
    json_put_number(out, "age_seconds", measured->age_seconds);
    json_put_number(out, "samples", measured->samples);
    json_put_number(out, "seconds", measured->seconds);
    if (measured->unused != NULL) {
        json_put_string(out, "unused", measured->unused);
    }
    json_close(out, '}');
}

static void add_candidate(struct buf *out, const struct place_request *request,
                          const struct place_node *node) {
    json_open(out, NULL, '{');
    json_put_number(out, "age_seconds", node->age_seconds);
    json_put_string(out, "basis", place_node_is_measured(node) ? "measured" : "predicted");
    json_put_string(out, "device_model", node->device_model);
    add_features(out, request, node);
    if (node->measured.samples > 0) {
        add_measured(out, &node->measured);
    }
    json_put_string(out, "node", node->name);
    json_put_string(out, "node_uuid", node->uuid);
    if (isfinite(node->predicted_seconds)) {
        json_put_number(out, "predicted_execution_time", node->predicted_seconds);
    }
    json_close(out, '}');
}

static int by_seconds(const void *left, const void *right) {
    const struct place_node *a = *(const struct place_node *const *)left;
    const struct place_node *b = *(const struct place_node *const *)right;
    return a->seconds != b->seconds ? (a->seconds > b->seconds) - (a->seconds < b->seconds)
                                    : (a > b) - (a < b);
}

static void add_candidates(struct buf *out, const struct place_request *request,
                           const struct place_nodes *nodes) {
    const struct place_node **ranked CLEANUP_FREE = mem_zalloc(nodes->n_nodes + 1, sizeof(*ranked));
    size_t n = 0;
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        if (nodes->nodes[i].excluded == NULL) {
            ranked[n++] = &nodes->nodes[i];
        }
    }
    qsort(ranked, n, sizeof(*ranked), by_seconds);
    json_open(out, "candidates", '[');
    for (size_t i = 0; i < n; i++) {
        add_candidate(out, request, ranked[i]);
    }
    json_close(out, ']');
}

static void add_excluded(struct buf *out, const struct place_nodes *nodes) {
    json_open(out, "excluded", '[');
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        const struct place_node *node = &nodes->nodes[i];
        if (node->excluded != NULL) {
            json_open(out, NULL, '{');
            json_put_string(out, "instance", node->instance);
            json_put_string(out, "node", node->name);
            json_put_string(out, "node_uuid", node->uuid);
            json_put_string(out, "reason", node->excluded);
            json_close(out, '}');
        }
    }
    json_close(out, ']');
}

static void add_explanation(struct buf *out, const struct gbt_notes *notes,
                            const struct place_request *request, const struct place_choice *choice,
                            const struct place_nodes *nodes) {
    json_open(out, "explain", '{');
    add_candidates(out, request, nodes);
    json_put_string(out, "confidence", choice->is_sure ? "normal" : "low");
    add_excluded(out, nodes);
    json_open(out, "outside_training", '[');
    for (size_t i = 0; i < N_FEATURES; i++) {
        if (choice->outside[i]) {
            json_put_string(out, NULL, feature_names[i]);
        }
    }
    json_close(out, ']');
    json_open(out, "predictor", '{');
    json_put_bool(out, "simulated", notes->simulated);
    json_put_string(out, "trained", notes->trained);
    json_put_string(out, "xgboost", notes->version);
    json_close(out, '}');
    json_close(out, '}');
}

void place_answer_write(const struct gbt *gbt, const struct place_request *request,
                        const struct place_choice *choice, const struct place_nodes *nodes,
                        struct buf *out) {
    const struct place_node *best = choice->best;
    json_open(out, NULL, '{');
    if (nodes != NULL) {
        add_explanation(out, gbt_notes(gbt), request, choice, nodes);
    }
    json_put_string(out, "message", "Profiling data received");
    json_put(out, "model_characteristics", "%s", buf_str(&request->echo));
    json_open(out, "profiling_prediction", '{');
    json_put_string(out, "class", best->class);
    json_put_string(out, "device_model", best->device_model);
    json_put_string(out, "model", request->model);
    json_put_string(out, "node", best->name);
    json_put_string(out, "node_uuid", best->uuid);
    json_put_number(out, "predicted_execution_time", best->seconds);
    json_close(out, '}');
    json_put_string(out, "status", "success");
    json_close(out, '}');
    buf_add_char(out, '\n');
}

void place_reasons_write(const struct place_nodes *nodes, struct buf *out) {
    enum { MAX_NAMED = 5 };
    if (nodes->n_nodes == 0) {
        buf_add_str(out, "no node: Prometheus has no char_node_device_model; waap serve exports "
                         "it with --collector.host.characterization (and, where the firmware "
                         "names no device, --collector.host.device-model)");
        return;
    }
    buf_printf(out, "none of %zu nodes can be chosen: ", nodes->n_nodes);
    for (size_t i = 0; i < nodes->n_nodes && i < MAX_NAMED; i++) {
        buf_add_str(out, i > 0 ? "; " : "");
        place_node_write_name(&nodes->nodes[i], out);
        buf_printf(out, ": %s", nodes->nodes[i].excluded);
    }
    buf_add_str(out, nodes->n_nodes > MAX_NAMED ? "; …" : "");
}
