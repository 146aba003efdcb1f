#pragma once

#include "placement/place/nodes.h"
#include "placement/place/request.h"
#include "placement/predictor/gbt.h"

/* Which node would run a model fastest. */
struct place_choice {
    const struct place_node *best; /* NULL: none can be chosen */
    bool outside[N_FEATURES];      /* which of the model's or the best node's features the predictor
                                      has not been trained with */
    bool is_sure; /* nothing is outside, and the predictor was trained with measured runs; or it was
                     not asked, as the model was measured on all nodes */
};

/* The features of a model on a node. */
void place_features(const struct place_request *request, const struct place_node *node,
                    float features[static N_FEATURES]);

/* Predicts for all nodes that can be chosen, and chooses, by measured times where the nodes have
 * some. Kinds of device that the predictor does not know are excluded unless measured. */
int place_choose(struct gbt *gbt, const struct place_request *request, struct place_nodes *nodes,
                 struct place_choice *ret_choice, struct error *err);

/* Appends the answer of the original: sorted keys, the request as it came. `nodes` (NULL: without)
 * adds how it came about below "explain", before the others. */
void place_answer_write(const struct gbt *gbt, const struct place_request *request,
                        const struct place_choice *choice, const struct place_nodes *nodes,
                        struct buf *out);

/* Appends the reasons why no node can be chosen: "2 nodes: rpi1: no CPU load; …". */
void place_reasons_write(const struct place_nodes *nodes, struct buf *out);
