#include "placement/place/metrics.h"

#include "exporter/core/cleanup.h"

static const struct metric_desc compute = {
    .name = "waap_place_compute_seconds_total",
    .help = "Time spent on joining samples, predicting and answering.",
    .type = METRIC_COUNTER,
    .unit = "seconds",
};
static const struct metric_desc excluded = {
    .name = "waap_place_excluded_nodes",
    .help = "Nodes that could not be chosen at the last request.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc nodes = {
    .name = "waap_place_nodes",
    .help = "Nodes that Prometheus knew at the last request.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc prediction_error = {
    .name = "waap_place_prediction_error_ratio",
    .help =
        "Predicted less measured run time of a model on a node, by the measured time, at the last "
        "request that named it.",
    .type = METRIC_GAUGE,
    .unit = "ratio",
    .labels = "model, node",
};
static const struct metric_desc predictor = {
    .name = "waap_place_predictor_info",
    .help = "What the predictor was trained with; always 1.",
    .type = METRIC_INFO,
    .labels = "simulated, trained, xgboost",
};
static const struct metric_desc query = {
    .name = "waap_place_query_seconds_total",
    .help = "Time spent on waiting for Prometheus.",
    .type = METRIC_COUNTER,
    .unit = "seconds",
};
static const struct metric_desc requests = {
    .name = "waap_place_requests_total",
    .help = "Requests to place a model, by result: success, bad_request, unavailable.",
    .type = METRIC_COUNTER,
    .labels = "result",
};

bool place_labels_init(struct place_labels *labels, const struct gbt *gbt) {
    static const char *const results[N_PLACE_RESULTS] = {
        [PLACE_OK] = "success",
        [PLACE_BAD_REQUEST] = "bad_request",
        [PLACE_UNAVAILABLE] = "unavailable",
    };
    const struct gbt_notes *notes = gbt_notes(gbt);
    *labels = (struct place_labels){
        .predictor = labels_render("simulated", notes->simulated ? "true" : "false", "trained",
                                   notes->trained, "xgboost", notes->version),
    };
    bool complete = labels->predictor != NULL;
    for (size_t i = 0; i < N_PLACE_RESULTS; i++) {
        labels->results[i] = labels_render("result", results[i]);
        complete = complete && labels->results[i] != NULL;
    }
    return complete;
}

void place_labels_finish(struct place_labels *labels) {
    for (size_t i = 0; i < N_PLACE_RESULTS; i++) {
        labels_destroy(labels->results[i]);
    }
    labels_destroy(labels->predictor);
}

void place_metrics_add(struct snapshot *out, const struct place_labels *labels,
                       const struct place_counts *counts, const struct place_errors *errors) {
    snapshot_add(out, &compute, NULL, counts->compute_seconds);
    snapshot_add(out, &excluded, NULL, (double)counts->n_excluded);
    snapshot_add(out, &nodes, NULL, (double)counts->n_nodes);
    for (size_t i = 0; i < errors->n_items; i++) {
        snapshot_add(out, &prediction_error, errors->items[i].labels, errors->items[i].ratio);
    }
    snapshot_add(out, &predictor, labels->predictor, 1);
    snapshot_add(out, &query, NULL, counts->query_seconds);
    for (size_t i = 0; i < N_PLACE_RESULTS; i++) {
        snapshot_add(out, &requests, labels->results[i], (double)counts->results[i]);
    }
}
