#include "placement/onnx/onnx_op.h"

#include <stdlib.h>

/* Sorted by name. Those of Microsoft's domain have names of their own. */
static const struct onnx_op ops[] = {
    {"Abs", .shape = onnx_shape_same},
    {"Add", .shape = onnx_shape_broadcast},
    {"And", .shape = onnx_shape_broadcast},
    {"AveragePool", ONNX_POOL, 0, 0, onnx_shape_pool},
    {"BatchNormalization", .shape = onnx_shape_same},
    {"Cast", .shape = onnx_shape_same},
    {"Ceil", .shape = onnx_shape_same},
    {"Celu", .shape = onnx_shape_same},
    {"Clip", .shape = onnx_shape_same},
    {"Concat", .shape = onnx_shape_concat},
    {"Conv", ONNX_CONV, 1, 0, onnx_shape_conv},
    {"ConvInteger", ONNX_CONV, 1, ONNX_QUANTISED, onnx_shape_conv},
    {"ConvTranspose", ONNX_CONV_TRANSPOSE, 1, 0, onnx_shape_conv_transpose},
    {"Cos", .shape = onnx_shape_same},
    {"CumSum", .shape = onnx_shape_same},
    {"DeformConv", ONNX_CONV, 1, 0, onnx_shape_conv},
    {"DequantizeLinear", .shape = onnx_shape_same},
    {"Div", .shape = onnx_shape_broadcast},
    {"Dropout", .shape = onnx_shape_same},
    {"DynamicQuantizeLinear", .shape = onnx_shape_same},
    {"DynamicQuantizeMatMul", ONNX_MATMUL, 1, ONNX_QUANTISED | ONNX_FUSED, onnx_shape_matmul},
    {"Elu", .shape = onnx_shape_same},
    {"Equal", .shape = onnx_shape_broadcast},
    {"Erf", .shape = onnx_shape_same},
    {"Exp", .shape = onnx_shape_same},
    {"FastGelu", .shape = onnx_shape_same},
    {"Flatten", .shape = onnx_shape_flatten},
    {"Floor", .shape = onnx_shape_same},
    {"FusedConv", ONNX_CONV, 1, ONNX_FUSED, onnx_shape_conv},
    {"FusedGemm", ONNX_GEMM, 1, ONNX_FUSED, onnx_shape_gemm},
    {"FusedMatMul", ONNX_MATMUL, 1, ONNX_FUSED, NULL},
    {"GRU", ONNX_RECURRENT, 1, 0, NULL},
    {"Gelu", .shape = onnx_shape_same},
    {"Gemm", ONNX_GEMM, 1, 0, onnx_shape_gemm},
    {"GlobalAveragePool", ONNX_POOL, 0, 0, onnx_shape_global_pool},
    {"GlobalLpPool", ONNX_POOL, 0, 0, onnx_shape_global_pool},
    {"GlobalMaxPool", ONNX_POOL, 0, 0, onnx_shape_global_pool},
    {"Greater", .shape = onnx_shape_broadcast},
    {"HardSigmoid", .shape = onnx_shape_same},
    {"HardSwish", .shape = onnx_shape_same},
    {"Hardmax", .shape = onnx_shape_same},
    {"Identity", .shape = onnx_shape_same},
    {"InstanceNormalization", .shape = onnx_shape_same},
    {"LRN", .shape = onnx_shape_same},
    {"LSTM", ONNX_RECURRENT, 1, 0, NULL},
    {"LayerNormalization", .shape = onnx_shape_same},
    {"LeakyRelu", .shape = onnx_shape_same},
    {"Less", .shape = onnx_shape_broadcast},
    {"Log", .shape = onnx_shape_same},
    {"LogSoftmax", .shape = onnx_shape_same},
    {"LpPool", ONNX_POOL, 0, 0, onnx_shape_pool},
    {"MatMul", ONNX_MATMUL, 1, 0, onnx_shape_matmul},
    {"MatMulInteger", ONNX_MATMUL, 1, ONNX_QUANTISED, onnx_shape_matmul},
    {"MatMulIntegerToFloat", ONNX_MATMUL, 1, ONNX_QUANTISED | ONNX_FUSED, onnx_shape_matmul},
    {"Max", .shape = onnx_shape_broadcast},
    {"MaxPool", ONNX_POOL, 0, 0, onnx_shape_pool},
    {"MaxRoiPool", ONNX_POOL, 0, 0, NULL},
    {"Mean", .shape = onnx_shape_broadcast},
    {"Min", .shape = onnx_shape_broadcast},
    {"Mish", .shape = onnx_shape_same},
    {"Mod", .shape = onnx_shape_broadcast},
    {"Mul", .shape = onnx_shape_broadcast},
    {"Neg", .shape = onnx_shape_same},
    {"Not", .shape = onnx_shape_same},
    {"Or", .shape = onnx_shape_broadcast},
    {"PRelu", .shape = onnx_shape_broadcast},
    {"Pow", .shape = onnx_shape_broadcast},
    {"QGemm", ONNX_GEMM, 3, ONNX_QUANTISED | ONNX_FUSED, onnx_shape_gemm},
    {"QLinearAveragePool", ONNX_POOL, 0, ONNX_QUANTISED, onnx_shape_pool},
    {"QLinearConv", ONNX_CONV, 3, ONNX_QUANTISED, onnx_shape_conv},
    {"QLinearGlobalAveragePool", ONNX_POOL, 0, ONNX_QUANTISED, onnx_shape_global_pool},
    {"QLinearLeakyRelu", .shape = onnx_shape_same},
    {"QLinearMatMul", ONNX_MATMUL, 3, ONNX_QUANTISED, onnx_shape_matmul},
    {"QLinearSigmoid", .shape = onnx_shape_same},
    {"QuantizeLinear", .shape = onnx_shape_same},
    {"QuickGelu", .shape = onnx_shape_same},
    {"RNN", ONNX_RECURRENT, 1, 0, NULL},
    {"Reciprocal", .shape = onnx_shape_same},
    {"ReduceL2", .shape = onnx_shape_reduce},
    {"ReduceMax", .shape = onnx_shape_reduce},
    {"ReduceMean", .shape = onnx_shape_reduce},
    {"ReduceMin", .shape = onnx_shape_reduce},
    {"ReduceSum", .shape = onnx_shape_reduce},
    {"Relu", .shape = onnx_shape_same},
    {"Reshape", .shape = onnx_shape_reshape},
    {"Round", .shape = onnx_shape_same},
    {"Selu", .shape = onnx_shape_same},
    {"Shrink", .shape = onnx_shape_same},
    {"Sigmoid", .shape = onnx_shape_same},
    {"Sign", .shape = onnx_shape_same},
    {"Sin", .shape = onnx_shape_same},
    {"Softmax", .shape = onnx_shape_same},
    {"Softplus", .shape = onnx_shape_same},
    {"Softsign", .shape = onnx_shape_same},
    {"Sqrt", .shape = onnx_shape_same},
    {"Squeeze", .shape = onnx_shape_squeeze},
    {"Sub", .shape = onnx_shape_broadcast},
    {"Sum", .shape = onnx_shape_broadcast},
    {"Tanh", .shape = onnx_shape_same},
    {"ThresholdedRelu", .shape = onnx_shape_same},
    {"Transpose", .shape = onnx_shape_transpose},
    {"Unsqueeze", .shape = onnx_shape_unsqueeze},
    {"Where", .shape = onnx_shape_broadcast},
    {"Xor", .shape = onnx_shape_broadcast},
};

static const struct onnx_op unknown = {"", ONNX_OTHER, 0, 0, NULL};

static int compare(const void *key, const void *row) {
    const struct protobuf *name = key;
    const struct onnx_op *op = row;
    size_t len = strlen(op->name);
    int order = memcmp(name->data, op->name, name->len < len ? name->len : len);
    return order != 0 ? order : (name->len > len) - (name->len < len);
}

const struct onnx_op *onnx_op_find(const struct onnx_node *node) {
    if (node->op_type.len == 0) {
        return &unknown;
    }
    const struct onnx_op *op =
        bsearch(&node->op_type, ops, ARRAY_LEN(ops), sizeof(ops[0]), compare);
    return op != NULL ? op : &unknown;
}
