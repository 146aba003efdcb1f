#pragma once

#include "placement/place/nodes.h"

/* How long a model took where it runs, which is better than any prediction. The answer to the query
 * has three series for a model on a node, told apart by the label `quantity`: the mean of the
 * `seconds`, how many `samples` that is of, and the `age` of the last one. */

/* What measured times must be like. */
struct place_measured_limits {
    double min_samples;
    double max_age_seconds;
};

/* Appends the expression with the name of the model in the place of each "$model", which stands
 * between double quotes. */
void place_measured_query_write(const char *expression, const char *model, struct buf *out);

/* Gives the nodes what was measured of the model there, by labels as in place_nodes_join. What is
 * incomplete or contradicts itself is left out; what is too old or too few is marked as unused. */
int place_measured_join(const struct place_samples *samples, const char *model,
                        const struct place_measured_limits *limits, struct place_nodes *nodes,
                        struct error *err);

/* Whether the measured time is used instead of the predicted one. */
bool place_node_is_measured(const struct place_node *node);

/* Whether it is used and there is a prediction to compare it with. */
bool place_node_has_error(const struct place_node *node);
