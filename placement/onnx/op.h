#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "placement/onnx/graph.h"

/* What we know of ONNX' operators: what kind of layer they are, and which form their result has. */

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

struct onnx_dims {
    size_t n;
    int64_t at[ONNX_MAX_RANK];
};

struct onnx_op;

/* The form of a node's first result from those of its inputs; false where it cannot be told. */
typedef bool onnx_shape_rule(const struct onnx_model *model, const struct onnx_op *op,
                             const struct onnx_node *node, struct onnx_dims *ret);

struct onnx_op {
    const char *name;
    enum onnx_kind kind;
    unsigned char weight_input; /* also the second operand of what has two */
    unsigned char flags;
    onnx_shape_rule *shape;
};

/* The operator of a node; one of kind ONNX_OTHER and no rule where we do not know it. */
const struct onnx_op *onnx_op_find(const struct onnx_node *node);

/* The form of a node's input where all of it is known. A first dimension that is left open is the
 * batch and counts as 1. */
bool onnx_input_dims(const struct onnx_model *model, const struct onnx_node *node, size_t input,
                     struct onnx_dims *ret);
bool onnx_shape_dims(const struct onnx_shape *shape, struct onnx_dims *ret);

/* Product of dimensions `from` and up; UINT64_MAX where it is too large. */
uint64_t onnx_dims_product(const struct onnx_dims *dims, size_t from);

/* The weights behind a node's input, also where they are only unpacked on the way; NULL: none. */
const struct onnx_tensor *onnx_input_weights(const struct onnx_model *model,
                                             const struct onnx_node *node, size_t input,
                                             bool *ret_quantised);

/* Fills in the forms of results that the file does not give, as far as they can be told. */
void onnx_shapes_fill(struct onnx_model *model, struct onnx_graph *graph);

/* Whole numbers from an attribute, or from an input that is fixed in the file: how many, or -1. */
int onnx_input_ints(const struct onnx_model *model, const struct onnx_node *node, const char *name,
                    size_t input, int64_t out[static ONNX_MAX_RANK]);

/* Fractions from an input that is fixed in the file: how many, or -1. */
int onnx_input_floats(const struct onnx_model *model, const struct onnx_node *node, size_t input,
                      float out[static ONNX_MAX_RANK]);

/* The form of one of the parts that Split makes. */
bool onnx_split_dims(const struct onnx_model *model, const struct onnx_node *node, size_t output,
                     struct onnx_dims *ret);

onnx_shape_rule onnx_shape_broadcast, onnx_shape_concat, onnx_shape_conv, onnx_shape_conv_transpose,
    onnx_shape_depth_to_space, onnx_shape_flatten, onnx_shape_gemm, onnx_shape_global_pool,
    onnx_shape_matmul, onnx_shape_pad, onnx_shape_pool, onnx_shape_reduce, onnx_shape_reshape,
    onnx_shape_resize, onnx_shape_same, onnx_shape_slice, onnx_shape_space_to_depth,
    onnx_shape_split, onnx_shape_squeeze, onnx_shape_transpose, onnx_shape_unsqueeze;
