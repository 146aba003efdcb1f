#pragma once

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "placement/predictor/predictor.h"

/* What POST /api/profiling is asked: the characteristics of a model. */
struct place_request {
    struct buf echo;            /* as it came, as JSON with sorted keys */
    struct buf model;           /* its name, as JSON */
    float features[N_FEATURES]; /* of the model; those of nodes are left alone */
};

/* Reads the body, which is written to. -EINVAL where it is no such object, naming the field, and
 * -ERANGE where a number makes no sense. Finish it in any case. */
int place_request_read(struct place_request *request, char *text, size_t len, struct error *err);

void place_request_finish(struct place_request *request);
#define CLEANUP_PLACE_REQUEST CLEANUP(place_request_finish)
