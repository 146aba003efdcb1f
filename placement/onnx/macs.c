#include "placement/onnx/op.h"
#include "placement/onnx/traits.h"

/* Multiplications with addition, as papers count them: additions of a bias and activations are
 * left out. */

static uint64_t product_of_output(const struct onnx_node *node) {
    struct onnx_dims out;
    return node->n_outputs > 0 && onnx_shape_dims(&node->outputs[0]->shape, &out)
               ? onnx_dims_product(&out, 0)
               : UINT64_MAX;
}

/* Every result takes one filter over its part of the channels. */
static uint64_t macs_of_conv(const struct onnx_model *model, const struct onnx_op *op,
                             const struct onnx_node *node) {
    struct onnx_dims weights;
    uint64_t out = product_of_output(node);
    if (out == UINT64_MAX || !onnx_input_dims(model, node, op->weight_input, &weights) ||
        weights.n < 2) {
        return UINT64_MAX;
    }
    return onnx_multiply(out, onnx_dims_product(&weights, 1));
}

/* Every input is spread by one filter. */
static uint64_t macs_of_conv_transpose(const struct onnx_model *model, const struct onnx_op *op,
                                       const struct onnx_node *node) {
    struct onnx_dims in, weights;
    if (!onnx_input_dims(model, node, 0, &in) ||
        !onnx_input_dims(model, node, op->weight_input, &weights) || weights.n < 2) {
        return UINT64_MAX;
    }
    return onnx_multiply(onnx_dims_product(&in, 0), onnx_dims_product(&weights, 1));
}

static uint64_t macs_of_gemm(const struct onnx_model *model, const struct onnx_op *op,
                             const struct onnx_node *node) {
    struct onnx_dims b;
    uint64_t out = product_of_output(node);
    if (out == UINT64_MAX || !onnx_input_dims(model, node, op->weight_input, &b) || b.n != 2) {
        return UINT64_MAX;
    }
    bool trans_b = onnx_attribute_int(node, "transB", 0) != 0;
    return onnx_multiply(out, (uint64_t)b.at[trans_b]);
}

static uint64_t macs_of_matmul(const struct onnx_model *model, const struct onnx_op *op,
                               const struct onnx_node *node) {
    (void)op;
    struct onnx_dims a;
    uint64_t out = product_of_output(node);
    if (out == UINT64_MAX || !onnx_input_dims(model, node, 0, &a) || a.n < 2) {
        return UINT64_MAX;
    }
    return onnx_multiply(out, (uint64_t)a.at[a.n - 1]);
}

/* Input and state go through their weights at every step of the sequence. */
static uint64_t macs_of_recurrent(const struct onnx_model *model, const struct onnx_op *op,
                                  const struct onnx_node *node) {
    (void)op;
    struct onnx_dims in, weights, state;
    if (!onnx_input_dims(model, node, 0, &in) || !onnx_input_dims(model, node, 1, &weights) ||
        !onnx_input_dims(model, node, 2, &state) || in.n != 3) {
        return UINT64_MAX;
    }
    in.n = 2;
    return onnx_multiply(onnx_dims_product(&in, 0),
                         onnx_add(onnx_dims_product(&weights, 0), onnx_dims_product(&state, 0)));
}

uint64_t onnx_node_macs(const struct onnx_model *model, const struct onnx_node *node) {
    static uint64_t (*const rules[])(const struct onnx_model *, const struct onnx_op *,
                                     const struct onnx_node *) = {
        [ONNX_CONV] = macs_of_conv, [ONNX_CONV_TRANSPOSE] = macs_of_conv_transpose,
        [ONNX_GEMM] = macs_of_gemm, [ONNX_MATMUL] = macs_of_matmul,
        [ONNX_POOL] = NULL,         [ONNX_RECURRENT] = macs_of_recurrent,
    };
    const struct onnx_op *op = onnx_op_find(node);
    return rules[op->kind] != NULL ? rules[op->kind](model, op, node) : 0;
}
