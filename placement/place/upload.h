#pragma once

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* The form that the original's extractor takes: an ONNX file, and the sizes of what goes in and
 * out. */

/* Turns the body of POST /upload, of that Content-Type, into the request of POST /api/profiling as
 * JSON. Sizes that are not given are those of the model's inputs and outputs. -EINVAL where it is
 * no such form, naming the field, -ERANGE where the file is no model that can be read, -EFBIG where
 * its graph would take more than `max_memory` beside the body. */
int place_upload_read(const char *content_type, const char *body, size_t len, size_t max_memory,
                      struct buf *ret_json, struct error *err);
