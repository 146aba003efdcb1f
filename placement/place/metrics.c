#include "placement/place/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"

/* ---- errors of predictions ---- */

static void error_finish(struct place_error *error) {
    labels_destroy(error->labels);
    free(error->model);
}

void place_errors_finish(struct place_errors *errors) {
    for (size_t i = 0; i < errors->n_items; i++) {
        error_finish(&errors->items[i]);
    }
    free(errors->items);
    *errors = (struct place_errors){.n_items = 0};
}

void place_errors_collect(struct place_errors *errors, const char *model,
                          const struct place_nodes *nodes) {
    for (size_t i = 0; i < nodes->n_nodes && errors->n_items < PLACE_MAX_ERRORS; i++) {
        const struct place_node *node = &nodes->nodes[i];
        if (place_node_has_error(node)) {
            ARRAY_GROW(&errors->items, &errors->cap_items, errors->n_items + 1);
            errors->items[errors->n_items++] = (struct place_error){
                .model = mem_strdup(model),
                .labels = labels_render("node", node->name, "model", model),
                .ratio =
                    (node->predicted_seconds - node->measured.seconds) / node->measured.seconds,
            };
        }
    }
}

/* Frees the first `n_first` and all of the model. */
static void drop(struct place_errors *errors, size_t n_first, const char *model) {
    size_t n = 0;
    for (size_t i = 0; i < errors->n_items; i++) {
        struct place_error *error = &errors->items[i];
        if (i < n_first || strcmp(error->model, model) == 0) {
            error_finish(error);
        } else {
            errors->items[n++] = *error;
        }
    }
    errors->n_items = n;
}

void place_errors_replace(struct place_errors *errors, const char *model,
                          struct place_errors *later) {
    drop(errors, 0, model);
    if (errors->n_items + later->n_items > PLACE_MAX_ERRORS) {
        drop(errors, errors->n_items + later->n_items - PLACE_MAX_ERRORS, model);
    }
    ARRAY_GROW(&errors->items, &errors->cap_items, errors->n_items + later->n_items);
    for (size_t i = 0; i < later->n_items; i++) {
        errors->items[errors->n_items++] = later->items[i];
    }
    later->n_items = 0;
}

/* ---- metrics ---- */

static const struct metric_desc compute = {
    "waap_place_compute_seconds_total", "Time spent on joining samples, predicting and answering.",
    METRIC_COUNTER, .unit = "seconds"};
static const struct metric_desc excluded = {"waap_place_excluded_nodes",
                                            "Nodes that could not be chosen at the last request.",
                                            METRIC_GAUGE};
static const struct metric_desc nodes = {
    "waap_place_nodes", "Nodes that Prometheus knew at the last request.", METRIC_GAUGE};
static const struct metric_desc prediction_error = {
    "waap_place_prediction_error_ratio",
    "Predicted less measured run time of a model on a node, by the measured time, at the last "
    "request that named it.",
    METRIC_GAUGE, .unit = "ratio", .labels = "model, node"};
static const struct metric_desc predictor = {"waap_place_predictor_info",
                                             "What the predictor was trained with; always 1.",
                                             METRIC_INFO, .labels = "simulated, trained, xgboost"};
static const struct metric_desc query = {"waap_place_query_seconds_total",
                                         "Time spent on waiting for Prometheus.", METRIC_COUNTER,
                                         .unit = "seconds"};
static const struct metric_desc requests = {
    "waap_place_requests_total",
    "Requests to place a model, by result: success, bad_request, unavailable.", METRIC_COUNTER,
    .labels = "result"};

void place_metrics_init(struct place_metrics *metrics, const struct gbt *gbt) {
    static const char *const results[N_PLACE_RESULTS] = {
        [PLACE_OK] = "success",
        [PLACE_BAD_REQUEST] = "bad_request",
        [PLACE_UNAVAILABLE] = "unavailable",
    };
    const struct gbt_notes *notes = gbt_notes(gbt);
    metrics->predictor = labels_render("simulated", notes->simulated ? "true" : "false", "trained",
                                       notes->trained, "xgboost", notes->version);
    for (size_t i = 0; i < N_PLACE_RESULTS; i++) {
        metrics->result_labels[i] = labels_render("result", results[i]);
    }
}

void place_metrics_finish(struct place_metrics *metrics) {
    for (size_t i = 0; i < N_PLACE_RESULTS; i++) {
        labels_destroy(metrics->result_labels[i]);
    }
    labels_destroy(metrics->predictor);
    place_errors_finish(&metrics->errors);
}

void place_metrics_add(struct snapshot *out, const struct place_metrics *metrics) {
    snapshot_add(out, &compute, NULL, metrics->compute_seconds);
    snapshot_add(out, &excluded, NULL, (double)metrics->n_excluded);
    snapshot_add(out, &nodes, NULL, (double)metrics->n_nodes);
    for (size_t i = 0; i < metrics->errors.n_items; i++) {
        const struct place_error *error = &metrics->errors.items[i];
        snapshot_add(out, &prediction_error, error->labels, error->ratio);
    }
    snapshot_add(out, &predictor, metrics->predictor, 1);
    snapshot_add(out, &query, NULL, metrics->query_seconds);
    for (size_t i = 0; i < N_PLACE_RESULTS; i++) {
        snapshot_add(out, &requests, metrics->result_labels[i], (double)metrics->results[i]);
    }
}
