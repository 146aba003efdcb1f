#pragma once

#include "exporter/core/buf.h"
#include "placement/onnx/traits.h"

/* Appends "vgg16" of "models/vgg16.onnx". */
void onnx_model_name(const char *path, struct buf *out);

/* Appends the members that a request of POST /api/profiling has of every model, but for its sizes.
 */
void onnx_traits_put(const struct onnx_traits *traits, const char *name, struct buf *out);

/* Aligned lines for people. */
void model_write(const char *name, const struct onnx_model *model, const struct onnx_traits *traits,
                 struct buf *out);

/* One JSON object: the request of POST /api/profiling, and everything else below "details". */
void model_write_json(const char *name, const struct onnx_model *model,
                      const struct onnx_traits *traits, struct buf *out);

/* `waap model FILE.onnx [--json]`: prints the characteristics of a model. Returns the exit code. */
int model_main(int argc, char **argv);
