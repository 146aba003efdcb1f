#pragma once

#include "exporter/core/arena.h"
#include "exporter/core/error.h"
#include "placement/client/promql.h"
#include "placement/predictor/predictor.h"

/* What is asked of Prometheus, one query each for all nodes. */
struct place_samples {
    struct promql_answer load;     /* percent of all CPUs */
    struct promql_answer disk;     /* percent of the root filesystem */
    struct promql_answer device;   /* who is there, with the age in seconds as value */
    struct promql_answer measured; /* how long a model took where it runs; see place_measured.h */
};

enum place_query { PLACE_LOAD, PLACE_DISK, PLACE_DEVICE, PLACE_MEASURED, N_PLACE_QUERIES };

/* Appends the expression of a query; `window` ("1m") is the time that the load, or what was
 * measured, is the mean of. A node without two samples in it has none, so none that is older. */
void place_query_write(enum place_query query, const char *window, struct buf *out);

struct promql_answer *place_samples_answer(struct place_samples *samples, enum place_query query);
void place_samples_finish(struct place_samples *samples);
#define CLEANUP_PLACE_SAMPLES CLEANUP(place_samples_finish)

/* How long a model took on a node; without samples it was not measured there. */
struct place_measured {
    double seconds, samples, age_seconds;
    const char *unused; /* why the prediction is taken nevertheless; NULL: it is not */
};

/* One node, as its labels name it; texts are the samples'. */
struct place_node {
    const struct promql_series *device; /* what names it */
    const char *name, *class, *uuid, *device_model, *instance;
    double load, disk;
    double age_seconds; /* of the sample that says what it is */
    bool is_old;
    const char *excluded; /* why it cannot be chosen; NULL: it can */
    bool is_ambiguous;    /* another one goes by its name */
    struct place_measured measured;
    double predicted_seconds; /* NAN: the predictor does not know such nodes */
    double seconds;           /* measured where that is used, else predicted */
};

struct place_nodes {
    struct place_node *nodes; /* by name, whatever the order of the samples */
    size_t n_nodes;
};

/* Puts together what belongs to one node, by labels: `node`, or the node's name as node_exporter's
 * `instance`, or the instance they share. What is missing, twice there, not a number
 * or older than `max_age_seconds` excludes a node, and so does a name that several go by. */
int place_nodes_join(const struct place_samples *samples, double max_age_seconds,
                     struct place_nodes *ret_nodes, struct error *err);
void place_nodes_finish(struct place_nodes *nodes);

/* Appends the name of a node, with its instance where the name is not enough. */
void place_node_write_name(const struct place_node *node, struct buf *out);
#define CLEANUP_PLACE_NODES CLEANUP(place_nodes_finish)
