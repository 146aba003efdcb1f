#include "placement/onnx/op.h"

enum { MAX_UNPACKING = 4 };

bool onnx_shape_dims(const struct onnx_shape *shape, struct onnx_dims *ret) {
    if (!shape->known) {
        return false;
    }
    ret->n = shape->n_dims;
    for (size_t i = 0; i < shape->n_dims; i++) {
        ret->at[i] = i == 0 && shape->dims[i] < 0 ? 1 : shape->dims[i];
        if (ret->at[i] < 0) {
            return false;
        }
    }
    return true;
}

bool onnx_input_dims(const struct onnx_model *model, const struct onnx_node *node, size_t input,
                     struct onnx_dims *ret) {
    if (input >= node->n_inputs) {
        return false;
    }
    const struct onnx_value *value = onnx_value_resolve(model, node->inputs[input]);
    if (value->tensor != NULL) {
        ret->n = value->tensor->n_dims;
        memcpy(ret->at, value->tensor->dims, ret->n * sizeof(ret->at[0]));
        return true;
    }
    return onnx_shape_dims(&value->shape, ret);
}

uint64_t onnx_dims_product(const struct onnx_dims *dims, size_t from) {
    uint64_t product = 1;
    for (size_t i = from; i < dims->n; i++) {
        if (__builtin_mul_overflow(product, (uint64_t)dims->at[i], &product)) {
            return UINT64_MAX;
        }
    }
    return product;
}

/* Operators between stored weights and the layer that uses them. */
static bool only_unpacks(const struct onnx_node *node, bool *ret_quantised) {
    if (onnx_text_is(node->op_type, "DequantizeLinear")) {
        *ret_quantised = true;
        return true;
    }
    return onnx_text_is(node->op_type, "Identity") || onnx_text_is(node->op_type, "Cast");
}

const struct onnx_tensor *onnx_input_weights(const struct onnx_model *model,
                                             const struct onnx_node *node, size_t input,
                                             bool *ret_quantised) {
    *ret_quantised = false;
    for (int i = 0; i < MAX_UNPACKING && input < node->n_inputs; i++) {
        const struct onnx_value *value = onnx_value_resolve(model, node->inputs[input]);
        if (value->tensor != NULL || value->producer == NULL ||
            !only_unpacks(value->producer, ret_quantised)) {
            return value->tensor;
        }
        node = value->producer;
        input = 0;
    }
    return NULL;
}

static const struct onnx_tensor *fixed_input(const struct onnx_model *model,
                                             const struct onnx_node *node, size_t input) {
    return input < node->n_inputs ? onnx_value_resolve(model, node->inputs[input])->tensor : NULL;
}

int onnx_input_ints(const struct onnx_model *model, const struct onnx_node *node, const char *name,
                    size_t input, int64_t out[static ONNX_MAX_RANK]) {
    int n = onnx_attribute_ints(node, name, out, ONNX_MAX_RANK);
    const struct onnx_tensor *tensor = n < 0 ? fixed_input(model, node, input) : NULL;
    return tensor != NULL ? onnx_tensor_ints(tensor, out, ONNX_MAX_RANK) : n;
}

int onnx_input_floats(const struct onnx_model *model, const struct onnx_node *node, size_t input,
                      float out[static ONNX_MAX_RANK]) {
    const struct onnx_tensor *tensor = fixed_input(model, node, input);
    return tensor != NULL ? onnx_tensor_floats(tensor, out, ONNX_MAX_RANK) : -1;
}

static void set_shape(struct onnx_model *model, struct onnx_value *value,
                      const struct onnx_dims *dims) {
    const int64_t *copy = onnx_keep(model, dims->at, dims->n * sizeof(dims->at[0]));
    if (copy != NULL) {
        value->shape = (struct onnx_shape){
            .known = true,
            .n_dims = dims->n,
            .dims = copy,
            .data_type = value->shape.data_type,
        };
    }
}

void onnx_shapes_fill(struct onnx_model *model, struct onnx_graph *graph) {
    for (struct onnx_node *node = graph->nodes; node != NULL; node = node->next) {
        const struct onnx_op *op = onnx_op_find(node);
        struct onnx_dims dims;
        if (op->shape != NULL && node->n_outputs > 0 &&
            !onnx_shape_dims(&node->outputs[0]->shape, &dims) &&
            op->shape(model, op, node, &dims)) {
            set_shape(model, node->outputs[0], &dims);
        }
        for (size_t i = 1; op->shape == onnx_shape_split && i < node->n_outputs; i++) {
            if (!onnx_shape_dims(&node->outputs[i]->shape, &dims) &&
                onnx_split_dims(model, node, i, &dims)) {
                set_shape(model, node->outputs[i], &dims);
            }
        }
        for (size_t i = 0; i < node->n_subgraphs; i++) {
            onnx_shapes_fill(model, node->subgraphs[i]);
        }
    }
}
