#pragma once

#include <stdint.h>

#include "exporter/metrics/metric.h"
#include "exporter/metrics/snapshot.h"
#include "placement/place/errors.h"
#include "placement/predictor/gbt.h"

enum place_result {
    PLACE_OK,          /* 200, 201 */
    PLACE_BAD_REQUEST, /* 400, 422 */
    PLACE_UNAVAILABLE, /* 503 */
    N_PLACE_RESULTS,
};

/* What the service counts. */
struct place_counts {
    uint64_t results[N_PLACE_RESULTS];
    double query_seconds;   /* all queries to Prometheus */
    double compute_seconds; /* everything else */
    size_t n_nodes;         /* of the last answer */
    size_t n_excluded;
};

struct place_labels {
    struct labels *results[N_PLACE_RESULTS];
    struct labels *predictor;
};

/* False when memory is out. */
bool place_labels_init(struct place_labels *labels, const struct gbt *gbt);
void place_labels_finish(struct place_labels *labels);

void place_metrics_add(struct snapshot *out, const struct place_labels *labels,
                       const struct place_counts *counts, const struct place_errors *errors);
