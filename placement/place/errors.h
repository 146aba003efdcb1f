#pragma once

#include <stddef.h>

#include "exporter/core/cleanup.h"
#include "exporter/metrics/labels.h"
#include "placement/place/nodes.h"

/* How far predictions are off what was measured, by node and model. Only what Prometheus has
 * measured gets in, so that those who ask cannot invent any. */

enum { PLACE_MAX_ERRORS = 2000 };

struct place_error {
    char *model;
    struct labels *labels; /* node, model */
    double ratio;          /* 0.5: the prediction is half as long again as what was measured */
};

struct place_errors {
    struct place_error *items; /* those of the model that was asked for last are the last */
    size_t n_items;
};

/* Takes what the nodes know both of, predicted and measured; the first of them where there are more
 * than the most. False when memory is out, with those that it was enough for. */
bool place_errors_collect(struct place_errors *errors, const char *model,
                          const struct place_nodes *nodes);

/* Moves what is in `later`, all of it of one model, into `errors`, in the place of what was
 * there of that model. Beyond the most, the models go that nobody has asked for for longest.
 * When memory is out, nothing is known of that model. */
void place_errors_replace(struct place_errors *errors, const char *model,
                          struct place_errors *later);

void place_errors_finish(struct place_errors *errors);
#define CLEANUP_PLACE_ERRORS CLEANUP(place_errors_finish)
