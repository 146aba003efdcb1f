#include <math.h>
#include <stdlib.h>

#include "exporter/core/json.h"
#include "exporter/core/number.h"
#include "placement/place/choice.h"
#include "placement/place/measured.h"

static void add_number(struct buf *out, const char *key, double value) {
    char text[NUMBER_MAX_LEN];
    buf_printf(out, "\"%s\":", key);
    buf_add(out, text, number_format(value, text));
}

static void add_text(struct buf *out, const char *key, const char *text) {
    buf_printf(out, "\"%s\":", key);
    json_add_string(out, text);
}

static void add_features(struct buf *out, const struct place_request *request,
                         const struct place_node *node) {
    float features[N_FEATURES];
    place_features(request, node, features);
    buf_add_str(out, "\"features\":{");
    for (size_t i = 0; i < N_FEATURES; i++) {
        buf_add_str(out, i > 0 ? "," : "");
        add_number(out, feature_names[i], (double)features[i]);
    }
    buf_add_str(out, "},");
}

static void add_measured(struct buf *out, const struct place_measured *measured) {
    if (measured->samples <= 0) {
        return;
    }
    buf_add_str(out, "\"measured\":{");
    add_number(out, "age_seconds", measured->age_seconds);
    buf_add_char(out, ',');
    add_number(out, "samples", measured->samples);
    buf_add_char(out, ',');
    add_number(out, "seconds", measured->seconds);
    if (measured->unused != NULL) {
        buf_add_char(out, ',');
        add_text(out, "unused", measured->unused);
    }
    buf_add_str(out, "},");
}

static void add_candidate(struct buf *out, const struct place_request *request,
                          const struct place_node *node) {
    buf_add_char(out, '{');
    add_number(out, "age_seconds", node->age_seconds);
    buf_add_char(out, ',');
    add_text(out, "basis", place_node_is_measured(node) ? "measured" : "predicted");
    buf_add_char(out, ',');
    add_text(out, "device_model", node->device_model);
    buf_add_char(out, ',');
    add_features(out, request, node);
    add_measured(out, &node->measured);
    add_text(out, "node", node->name);
    buf_add_char(out, ',');
    add_text(out, "node_uuid", node->uuid);
    if (isfinite(node->predicted_seconds)) {
        buf_add_char(out, ',');
        add_number(out, "predicted_execution_time", node->predicted_seconds);
    }
    buf_add_char(out, '}');
}

static int by_seconds(const void *left, const void *right) {
    const struct place_node *a = *(const struct place_node *const *)left;
    const struct place_node *b = *(const struct place_node *const *)right;
    return a->seconds != b->seconds ? (a->seconds > b->seconds) - (a->seconds < b->seconds)
                                    : (a > b) - (a < b);
}

static void add_candidates(struct buf *out, const struct place_request *request,
                           const struct place_nodes *nodes) {
    const struct place_node **ranked CLEANUP_FREE = calloc(nodes->n_nodes + 1, sizeof(*ranked));
    size_t n = 0;
    out->failed |= ranked == NULL;
    for (size_t i = 0; ranked != NULL && i < nodes->n_nodes; i++) {
        if (nodes->nodes[i].excluded == NULL) {
            ranked[n++] = &nodes->nodes[i];
        }
    }
    if (n > 0) {
        qsort(ranked, n, sizeof(*ranked), by_seconds);
    }
    buf_add_str(out, "\"candidates\":[");
    for (size_t i = 0; i < n; i++) {
        buf_add_str(out, i > 0 ? "," : "");
        add_candidate(out, request, ranked[i]);
    }
    buf_add_str(out, "],");
}

static void add_excluded(struct buf *out, const struct place_nodes *nodes) {
    buf_add_str(out, "\"excluded\":[");
    const char *separator = "{";
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        if (nodes->nodes[i].excluded != NULL) {
            buf_add_str(out, separator);
            add_text(out, "instance", nodes->nodes[i].instance);
            buf_add_char(out, ',');
            add_text(out, "node", nodes->nodes[i].name);
            buf_add_char(out, ',');
            add_text(out, "node_uuid", nodes->nodes[i].uuid);
            buf_add_char(out, ',');
            add_text(out, "reason", nodes->nodes[i].excluded);
            buf_add_char(out, '}');
            separator = ",{";
        }
    }
    buf_add_str(out, "],");
}

static void add_explanation(struct buf *out, const struct gbt *gbt,
                            const struct place_request *request, const struct place_choice *choice,
                            const struct place_nodes *nodes) {
    const struct gbt_notes *notes = gbt_notes(gbt);
    buf_add_str(out, "\"explain\":{");
    add_candidates(out, request, nodes);
    buf_printf(out, "\"confidence\":\"%s\",", choice->is_sure ? "normal" : "low");
    add_excluded(out, nodes);
    buf_add_str(out, "\"outside_training\":[");
    const char *separator = "";
    for (size_t i = 0; i < N_FEATURES; i++) {
        if (choice->outside[i]) {
            buf_printf(out, "%s\"%s\"", separator, feature_names[i]);
            separator = ",";
        }
    }
    buf_printf(out, "],\"predictor\":{\"simulated\":%s,", notes->simulated ? "true" : "false");
    add_text(out, "trained", notes->trained);
    buf_add_char(out, ',');
    add_text(out, "xgboost", notes->version);
    buf_add_str(out, "}},");
}

void place_answer_write(const struct gbt *gbt, const struct place_request *request,
                        const struct place_choice *choice, const struct place_nodes *nodes,
                        struct buf *out) {
    const struct place_node *best = choice->best;
    buf_add_char(out, '{');
    if (nodes != NULL) {
        add_explanation(out, gbt, request, choice, nodes);
    }
    buf_add_str(out, "\"message\":\"Profiling data received\",\"model_characteristics\":");
    buf_add(out, request->echo.data, request->echo.len);
    buf_add_str(out, ",\"profiling_prediction\":{");
    add_text(out, "class", best->class);
    buf_add_char(out, ',');
    add_text(out, "device_model", best->device_model);
    buf_printf(out, ",\"model\":%s,", buf_str(&request->model));
    add_text(out, "node", best->name);
    buf_add_char(out, ',');
    add_text(out, "node_uuid", best->uuid);
    buf_add_char(out, ',');
    add_number(out, "predicted_execution_time", best->seconds);
    buf_add_str(out, "},\"status\":\"success\"}\n");
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
