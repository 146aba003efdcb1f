#pragma once

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "placement/predictor/predictor.h"

/* A request of POST /api/profiling: the characteristics of a model. */
struct place_request {
    struct buf echo;            /* all of it, as JSON with sorted keys */
    char *model;                /* its name */
    float features[N_FEATURES]; /* of the model; those of nodes are left alone */
};

/* Reads the body. -EINVAL with the field if it is not such an object, -ERANGE if a number is out of
 * range. Finish it in any case. */
int place_request_read(struct place_request *request, const char *text, size_t len,
                       struct error *err);

/* Reads the body of POST /upload: the form of the original's extractor, with an ONNX file and the
 * sizes of the model's inputs and outputs, which default to those in the file. -EINVAL with the
 * field if it is not such a form, -ERANGE if the file is not a readable model, -EFBIG if its graph
 * would take more than `max_memory` beside the body. Finish it in any case. */
int place_request_read_upload(struct place_request *request, const char *content_type,
                              const char *body, size_t len, size_t max_memory, struct error *err);

void place_request_finish(struct place_request *request);
#define CLEANUP_PLACE_REQUEST CLEANUP(place_request_finish)
