#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "placement/onnx/graph.h"

/* The characteristics of a model that predict its run time. */

/* Of the whole model: branches (the larger of each If), bodies of loops (once) and functions (at
 * each call) included, wherever the weights are. Operands of 64 bits that would run over stop
 * there. */
enum onnx_total {
    ONNX_CONV_LAYERS,
    ONNX_DEPTHWISE_LAYERS, /* of the convolutions: one filter per channel */
    ONNX_GROUPED_LAYERS,   /* of the convolutions: in groups, but not depthwise */
    ONNX_FILTERS,
    ONNX_FC_LAYERS,     /* Gemm, and MatMul with stored weights */
    ONNX_MATMUL_LAYERS, /* products of two results, as in attention */
    ONNX_POOL_LAYERS,
    ONNX_RECURRENT_LAYERS,
    ONNX_QUANTISED_LAYERS, /* of all the above */
    ONNX_FUSED_LAYERS,
    ONNX_PARAMETERS,
    ONNX_WEIGHT_BYTES,
    ONNX_MACS,         /* multiplications with addition, of the layers whose form is known */
    ONNX_MACS_UNKNOWN, /* layers that are missing there */
    ONNX_NODES,
    ONNX_SUBGRAPHS,
    ONNX_N_TOTALS,
};

extern const char *const onnx_total_names[ONNX_N_TOTALS];

struct onnx_traits {
    /* What the original service counts: of the outermost graph, with weights among the initializers
     * only. */
    uint64_t conv_layers;
    uint64_t fc_layers;
    uint64_t filter_details;
    uint64_t pool_layers;
    uint64_t total_parameters;

    uint64_t totals[ONNX_N_TOTALS];

    /* Of all inputs without weights and all outputs; -1 if a shape is not fixed. */
    int64_t input_bytes;
    int64_t output_bytes;
    bool batch_assumed; /* an open first dimension was taken for 1 */
};

/* Counts; the shapes of results that are not in the file are filled in. -EINVAL if a function calls
 * itself, -EFBIG if that takes too much memory. */
int onnx_traits_get(struct onnx_model *model, struct onnx_traits *ret_traits, struct error *err);
