#pragma once

#include "exporter/core/buf.h"
#include "placement/onnx/traits.h"

/* What `waap model` prints. */
struct model_text {
    const char *name; /* of the model */
    const struct onnx_model *model;
    const struct onnx_traits *traits;
};

/* Aligned lines for people. */
void model_text_write(const struct model_text *text, struct buf *out);

/* One JSON object: the request of POST /api/profiling, and everything else below "details". */
void model_text_write_json(const struct model_text *text, struct buf *out);

/* `waap model FILE.onnx [--json]`: prints the characteristics of a model. Returns the exit code. */
int model_main(int argc, char **argv);
