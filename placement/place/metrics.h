#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exporter/core/cleanup.h"
#include "exporter/metrics/labels.h"
#include "exporter/metrics/metric.h"
#include "exporter/metrics/snapshot.h"
#include "placement/place/nodes.h"
#include "placement/predictor/gbt.h"

/* How far predictions are off the measured times, by node and model. Only models that Prometheus
 * has measured are in it, so clients cannot add series. */

enum { PLACE_MAX_ERRORS = 2000 };

struct place_error {
    char *model;
    struct labels *labels; /* node, model */
    double ratio;          /* 0.5: the prediction is 1.5 times the measured time */
};

struct place_errors {
    struct place_error *items; /* the model of the last request is last */
    size_t n_items, cap_items;
};

/* Adds the errors of the nodes that have a prediction and a measured time, at most
 * PLACE_MAX_ERRORS. */
void place_errors_collect(struct place_errors *errors, const char *model,
                          const struct place_nodes *nodes);

/* Replaces the errors of the model by those in `later`, which is emptied. If there are too many,
 * the models that were requested least recently are evicted. */
void place_errors_replace(struct place_errors *errors, const char *model,
                          struct place_errors *later);

void place_errors_finish(struct place_errors *errors);
#define CLEANUP_PLACE_ERRORS CLEANUP(place_errors_finish)

enum place_result {
    PLACE_OK,          /* 200, 201 */
    PLACE_BAD_REQUEST, /* 400, 422 */
    PLACE_UNAVAILABLE, /* 503 */
    N_PLACE_RESULTS,
};

/* What the service counts. */
struct place_metrics {
    uint64_t results[N_PLACE_RESULTS];
    double query_seconds;   /* all queries to Prometheus */
    double compute_seconds; /* everything else */
    size_t n_nodes;         /* of the last answer */
    size_t n_excluded;
    struct place_errors errors;
    struct labels *result_labels[N_PLACE_RESULTS];
    struct labels *predictor;
};

void place_metrics_init(struct place_metrics *metrics, const struct gbt *gbt);
void place_metrics_finish(struct place_metrics *metrics);
void place_metrics_add(struct snapshot *out, const struct place_metrics *metrics);
