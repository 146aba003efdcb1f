#pragma once

#include "placement/place/nodes.h"
#include "placement/place/request.h"
#include "placement/predictor/gbt.h"

/* Which node would run a model fastest. */
struct place_choice {
    const struct place_node *best; /* NULL: none can be chosen */
    bool outside[N_FEATURES];      /* which features of the model or the best node are outside of
                                      the training data */
    bool is_sure; /* nothing is outside, and the predictor was trained here with measured runs; or
                     the model was measured on all nodes */
};

/* Predicts for all nodes that can be chosen, and chooses the fastest, by measured times if a node
 * has any. Kinds of device that the predictor does not know are excluded unless measured. */
int place_choose(struct gbt *gbt, const struct place_request *request, struct place_nodes *nodes,
                 struct place_choice *ret_choice, struct error *err);

/* Appends the answer as the original service formats it: sorted keys, the request included. `nodes`
 * (NULL: without) adds the reasons below "explain". */
void place_answer_write(const struct gbt *gbt, const struct place_request *request,
                        const struct place_choice *choice, const struct place_nodes *nodes,
                        struct buf *out);

/* Appends the reasons why no node can be chosen: "2 nodes: rpi1: no CPU load; …". */
void place_reasons_write(const struct place_nodes *nodes, struct buf *out);
