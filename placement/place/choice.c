#include "placement/place/choice.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "placement/place/measured.h"

static const char unknown_device[] = "a kind of device that the predictor was not trained with";

void place_features(const struct place_request *request, const struct place_node *node,
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

static void exclude_unknown(const struct gbt *gbt, struct place_nodes *nodes) {
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        struct place_node *node = &nodes->nodes[i];
        if (node->excluded == NULL && is_unknown(gbt, node) && !place_node_is_measured(node)) {
            node->excluded = unknown_device;
        }
    }
}

static int predict(struct gbt *gbt, const struct place_request *request, struct place_nodes *nodes,
                   struct error *err) {
    float *rows CLEANUP_FREE = malloc((nodes->n_nodes + 1) * N_FEATURES * sizeof(*rows));
    float *results CLEANUP_FREE = malloc((nodes->n_nodes + 1) * sizeof(*results));
    if (rows == NULL || results == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    size_t n_rows = 0;
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        if (nodes->nodes[i].excluded == NULL) {
            place_features(request, &nodes->nodes[i], &rows[N_FEATURES * n_rows++]);
        }
    }
    int r = gbt_predict(gbt, rows, n_rows, results, err);
    n_rows = 0;
    for (size_t i = 0; r == 0 && i < nodes->n_nodes; i++) {
        struct place_node *node = &nodes->nodes[i];
        if (node->excluded == NULL) {
            double seconds = exp((double)results[n_rows++]);
            node->predicted_seconds = is_unknown(gbt, node) ? NAN : seconds;
            node->seconds = place_node_is_measured(node) ? node->measured.seconds : seconds;
        }
    }
    return r;
}

static bool all_are_measured(const struct place_nodes *nodes) {
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        if (nodes->nodes[i].excluded == NULL && !place_node_is_measured(&nodes->nodes[i])) {
            return false;
        }
    }
    return true;
}

int place_choose(struct gbt *gbt, const struct place_request *request, struct place_nodes *nodes,
                 struct place_choice *ret_choice, struct error *err) {
    exclude_unknown(gbt, nodes);
    int r = predict(gbt, request, nodes, err);
    if (r < 0) {
        return r;
    }
    struct place_choice choice = {.is_sure = !gbt_notes(gbt)->simulated};
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        const struct place_node *node = &nodes->nodes[i];
        if (node->excluded == NULL &&
            (choice.best == NULL || node->seconds < choice.best->seconds)) {
            choice.best = node;
        }
    }
    if (choice.best != NULL) {
        float features[N_FEATURES];
        place_features(request, choice.best, features);
        for (size_t i = 0; i < N_FEATURES; i++) {
            choice.outside[i] = is_outside(gbt, i, features[i]);
            choice.is_sure = choice.is_sure && !choice.outside[i];
        }
        choice.is_sure = choice.is_sure || all_are_measured(nodes);
    }
    *ret_choice = choice;
    return 0;
}
