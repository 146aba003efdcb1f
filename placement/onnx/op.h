#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "placement/onnx/graph.h"

/* ONNX operators: what kind of layer they are, and which shape their result has. */

enum onnx_kind {
    ONNX_OTHER,
    ONNX_CONV,
    ONNX_CONV_TRANSPOSE,
    ONNX_GEMM,
    ONNX_MATMUL,
    ONNX_POOL,
    ONNX_RECURRENT,
};

enum { ONNX_QUANTISED = 1, ONNX_FUSED = 2 };

/* A node and its operator. */
struct onnx_layer {
    const struct onnx_model *model;
    const struct onnx_node *node;
    const struct onnx_op *op;
    size_t output; /* the result that the rule is about */
};

struct onnx_op {
    const char *name;
    enum onnx_kind kind;
    unsigned char weight_input; /* also the second operand of what has two */
    unsigned char flags;
    /* Makes the shape of the first input that of the result; false if it is unknown. NULL: no
     * rule. */
    bool (*shape)(const struct onnx_layer *layer, struct onnx_dims *dims);
};

/* The operator of a node; one of kind ONNX_OTHER without a rule if it is unknown. */
const struct onnx_op *onnx_op_find(const struct onnx_node *node);

/* The shape of an input if all of it is known. An open first dimension is the batch and counts as
 * 1. */
bool onnx_input_dims(const struct onnx_layer *layer, size_t input, struct onnx_dims *ret);
bool onnx_shape_dims(const struct onnx_shape *shape, struct onnx_dims *ret);

/* Product of dimensions `from` and up; UINT64_MAX if it is too large. */
uint64_t onnx_dims_product(const struct onnx_dims *dims, size_t from);

/* The weights behind an input, also if operators between only unpack them; NULL: none. */
const struct onnx_tensor *onnx_input_weights(const struct onnx_layer *layer, size_t input,
                                             bool *ret_quantised);

/* Fills in the shapes of results that are not in the file, as far as they follow from the inputs.
 */
void onnx_shapes_fill(struct onnx_model *model, struct onnx_graph *graph);
