#pragma once

#include "exporter/core/error.h"
#include "placement/client/promql.h"
#include "placement/predictor/predictor.h"

/* Queries to Prometheus, each for all nodes. */
enum place_query {
    PLACE_LOAD,     /* percent of all CPUs */
    PLACE_DISK,     /* percent of the root filesystem */
    PLACE_DEVICE,   /* the nodes; the value is the age in seconds */
    PLACE_MEASURED, /* how long a model took, as three series for each node, with the label
                       `quantity`: the mean of the `seconds`, the number of `samples` and the
                       `age` of the last one */
    N_PLACE_QUERIES,
};

struct place_samples {
    struct promql_answer answers[N_PLACE_QUERIES];
};

/* Appends the expression of a query; `window` ("1m") is the time over which the load, or the
 * measured times, are averaged. A node needs two samples in it. */
void place_query_write(enum place_query query, const char *window, struct buf *out);

/* Appends the expression with each "$model", which is between double quotes, replaced by the name
 * of the model. */
void place_measured_query_write(const char *expression, const char *model, struct buf *out);

void place_samples_finish(struct place_samples *samples);
#define CLEANUP_PLACE_SAMPLES CLEANUP(place_samples_finish)

/* How long a model took on a node; without samples it was not measured there. */
struct place_measured {
    double seconds, samples, age_seconds;
    const char *unused; /* why the prediction is used instead; NULL: it is not */
};

/* One node, as its labels name it; texts are the samples'. */
struct place_node {
    const struct promql_series *device; /* the series with its name */
    const char *name, *class, *uuid, *device_model, *instance;
    double load, disk;
    double age_seconds; /* of `device` */
    bool is_old;
    const char *excluded; /* why it cannot be chosen; NULL: it can */
    bool is_ambiguous;    /* another node has the same name */
    struct place_measured measured;
    double predicted_seconds; /* NAN: the predictor does not know such nodes */
    double seconds;           /* measured if that is used, else predicted */
};

struct place_nodes {
    struct place_node *nodes; /* sorted by name */
    size_t n_nodes;
};

/* Joins the series of each node by labels: `node`, or the node's name as node_exporter's
 * `instance`, or the instance they share. A value that is missing, ambiguous, not a number or older
 * than `max_age_seconds` excludes a node, and so does a name that several nodes have. */
void place_nodes_join(const struct place_samples *samples, double max_age_seconds,
                      struct place_nodes *ret_nodes);
void place_nodes_finish(struct place_nodes *nodes);
#define CLEANUP_PLACE_NODES CLEANUP(place_nodes_finish)

/* Appends the name of a node, with its instance if the name is ambiguous. */
void place_node_write_name(const struct place_node *node, struct buf *out);

/* What measured times must be like. */
struct place_measured_limits {
    double min_samples;
    double max_age_seconds;
};

/* Sets the measured times of the model, by labels as in place_nodes_join. Incomplete or ambiguous
 * ones are left out; those that are too old or too few are marked as unused. */
void place_measured_join(const struct place_samples *samples, const char *model,
                         const struct place_measured_limits *limits, struct place_nodes *nodes);

/* Whether the measured time is used instead of the predicted one. */
bool place_node_is_measured(const struct place_node *node);

/* Whether it is used and there is a prediction to compare it with. */
bool place_node_has_error(const struct place_node *node);
