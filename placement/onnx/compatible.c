#include "placement/onnx/op.h"
#include "placement/onnx/traits.h"

/* Counting as the original service does, odd rules included: predictors that were trained with its
 * numbers need the same ones. */

static const struct onnx_tensor *initializer_of(const struct onnx_node *node, size_t input) {
    return input < node->n_inputs && node->inputs[input]->is_initializer
               ? node->inputs[input]->tensor
               : NULL;
}

static bool comes_from(const struct onnx_node *node, const char *op_type) {
    const struct onnx_node *producer = node->n_inputs > 0 ? node->inputs[0]->producer : NULL;
    return producer != NULL && onnx_text_is(producer->op_type, op_type);
}

/* A convolution behind the global pool is the classifier: it counts as both. */
static void count_conv(const struct onnx_node *node, struct onnx_traits *traits) {
    const struct onnx_tensor *weights = initializer_of(node, 1);
    if (weights == NULL || weights->n_dims == 0) {
        return;
    }
    traits->conv_layers++;
    traits->filter_details = onnx_add(traits->filter_details, (uint64_t)weights->dims[0]);
    traits->fc_layers += comes_from(node, "GlobalAveragePool");
}

static void count_pool(const struct onnx_node *node, struct onnx_traits *traits) {
    (void)node;
    traits->pool_layers++;
}

static void count_gemm(const struct onnx_node *node, struct onnx_traits *traits) {
    (void)node;
    traits->fc_layers++;
}

static void count_matmul(const struct onnx_node *node, struct onnx_traits *traits) {
    traits->fc_layers += comes_from(node, "Flatten") || initializer_of(node, 1) != NULL;
}

static const struct {
    const char *op_type;
    void (*count)(const struct onnx_node *node, struct onnx_traits *traits);
} counted[] = {
    {"AveragePool", count_pool},       {"Conv", count_conv},     {"Gemm", count_gemm},
    {"GlobalAveragePool", count_pool}, {"MatMul", count_matmul}, {"MaxPool", count_pool},
};

void onnx_traits_compatible(const struct onnx_model *model, struct onnx_traits *traits) {
    traits->total_parameters = model->graph->n_parameters;
    for (const struct onnx_node *node = model->graph->nodes; node != NULL; node = node->next) {
        for (size_t i = 0; i < ARRAY_LEN(counted); i++) {
            if (onnx_text_is(node->op_type, counted[i].op_type)) {
                counted[i].count(node, traits);
            }
        }
    }
}
