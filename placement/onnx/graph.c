#include "placement/onnx/graph.h"

#include <errno.h>

/* Field numbers of onnx.proto. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER_NAME = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET_IMPORT = 8,
    MODEL_FUNCTION = 25,
    OPSET_DOMAIN = 1,
    OPSET_VERSION = 2,
    GRAPH_NODE = 1,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE_INFO = 13,
    GRAPH_SPARSE_INITIALIZER = 15,
    SPARSE_VALUES = 1,
    FUNCTION_NAME = 1,

    FUNCTION_NODE = 7,
    FUNCTION_DOMAIN = 10,
};

struct onnx_graph *onnx_graph_add(struct onnx_model *model, struct onnx_graph *parent,
                                  const char *start) {
    struct onnx_graph *graph = onnx_take(model, sizeof(*graph));
    if (graph == NULL) {
        return NULL;
    }
    *graph = (struct onnx_graph){
        .parent = parent,
        .depth = parent != NULL ? parent->depth + 1 : 0,
        .start = start,
    };
    graph->last_node = &graph->nodes;
    graph->last_input = &graph->inputs;
    graph->last_output = &graph->outputs;
    return graph;
}

static int add_sum(const struct onnx_model *model, const char *at, uint64_t *sum, uint64_t n,
                   struct error *err) {
    if (__builtin_add_overflow(*sum, n, sum) || *sum > INT64_MAX) {
        return onnx_fail(model, at, err, "tensors of more elements than can be counted");
    }
    return 0;
}

static int read_initializer(struct onnx_model *model, struct protobuf message,
                            struct onnx_graph *graph, struct error *err) {
    struct onnx_tensor *tensor = onnx_take(model, sizeof(*tensor));
    struct protobuf name;
    if (tensor == NULL) {
        return onnx_out_of_memory(model, err);
    }
    int r = onnx_tensor_read(model, message, tensor, &name, err);
    r = r < 0 ? r : add_sum(model, message.data, &graph->n_parameters, tensor->n_elements, err);
    if (r < 0) {
        return r;
    }
    graph->n_weight_bytes =
        onnx_add(graph->n_weight_bytes,
                 onnx_multiply(tensor->n_elements, onnx_type_size(tensor->data_type)));
    struct onnx_value *value;
    r = onnx_value_add(model, graph, name, &value, err);
    if (r == 0) {
        value->tensor = tensor;
        value->is_initializer = true;
        onnx_release(model, message);
    }
    return r;
}

static int read_sparse(struct onnx_model *model, struct protobuf message, struct onnx_graph *graph,
                       struct error *err) {
    struct protobuf_field field;
    int r;
    while ((r = onnx_next_field(model, &message, &field, err)) > 0) {
        if (onnx_key(&field) != ONNX_KEY(SPARSE_VALUES, PROTOBUF_BYTES)) {
            continue;
        }
        struct onnx_tensor tensor;
        struct protobuf name;
        r = onnx_tensor_read(model, field.bytes, &tensor, &name, err);
        r = r < 0
                ? r
                : add_sum(model, field.bytes.data, &graph->n_sparse_values, tensor.n_elements, err);
        if (r < 0) {
            break;
        }
    }
    return r;
}

static int add_port(struct onnx_model *model, struct onnx_port ***last,
                    const struct onnx_value *value, struct error *err) {
    struct onnx_port *port = onnx_take(model, sizeof(*port));
    if (port == NULL) {
        return onnx_out_of_memory(model, err);
    }
    *port = (struct onnx_port){.value = value, .shape = value->shape};
    **last = port;
    *last = &port->next;
    return 0;
}

static int read_value_info(struct onnx_model *model, const struct protobuf_field *field,
                           struct onnx_graph *graph, struct error *err) {
    struct onnx_shape shape;
    struct protobuf name;
    int r = onnx_value_info_read(model, field->bytes, &shape, &name, err);
    struct onnx_value *value = NULL;
    r = r < 0 ? r : onnx_value_add(model, graph, name, &value, err);
    if (r < 0) {
        return r;
    }
    value->shape = shape;
    if (field->number == GRAPH_INPUT) {
        value->is_input = true;
        return add_port(model, &graph->last_input, value, err);
    }
    return field->number == GRAPH_OUTPUT ? add_port(model, &graph->last_output, value, err) : 0;
}

static int read_graph_field(struct onnx_model *model, const struct protobuf_field *field,
                            struct onnx_graph *graph, struct error *err) {
    switch (onnx_key(field)) {
    case ONNX_KEY(GRAPH_NODE, PROTOBUF_BYTES):
        return onnx_node_read(model, field->bytes, graph, err);
    case ONNX_KEY(GRAPH_INITIALIZER, PROTOBUF_BYTES):
        return read_initializer(model, field->bytes, graph, err);
    case ONNX_KEY(GRAPH_SPARSE_INITIALIZER, PROTOBUF_BYTES):
        return read_sparse(model, field->bytes, graph, err);
    case ONNX_KEY(GRAPH_INPUT, PROTOBUF_BYTES):
    case ONNX_KEY(GRAPH_OUTPUT, PROTOBUF_BYTES):
    case ONNX_KEY(GRAPH_VALUE_INFO, PROTOBUF_BYTES):
        return read_value_info(model, field, graph, err);
    default:
        return 0;
    }
}

int onnx_graph_read(struct onnx_model *model, struct protobuf message, struct onnx_graph *graph,
                    struct error *err) {
    struct protobuf_field field;
    int r;
    while ((r = onnx_next_field(model, &message, &field, err)) > 0) {
        r = read_graph_field(model, &field, graph, err);
        if (r < 0) {
            return r;
        }
    }
    return r < 0 ? r : onnx_graph_check_order(model, graph, err);
}

static int read_function(struct onnx_model *model, struct protobuf message, struct error *err) {
    struct onnx_graph *function = onnx_graph_add(model, NULL, message.data);
    if (function == NULL) {
        return onnx_out_of_memory(model, err);
    }
    function->next = model->functions;
    model->functions = function;
    struct protobuf_field field;
    int r;
    while ((r = onnx_next_field(model, &message, &field, err)) > 0) {
        switch (onnx_key(&field)) {
        case ONNX_KEY(FUNCTION_NAME, PROTOBUF_BYTES):
            function->name = field.bytes;
            break;
        case ONNX_KEY(FUNCTION_DOMAIN, PROTOBUF_BYTES):
            function->domain = field.bytes;
            break;
        case ONNX_KEY(FUNCTION_NODE, PROTOBUF_BYTES):
            r = onnx_node_read(model, field.bytes, function, err);
            break;
        default:
            break;
        }
        if (r < 0) {
            return r;
        }
    }
    return r < 0 ? r : onnx_graph_check_order(model, function, err);
}

/* The version of the operators that have no domain, or ONNX' own name for it. */
static int read_opset(struct onnx_model *model, struct protobuf message, struct error *err) {
    struct protobuf_field field;
    struct protobuf domain = {0};
    int64_t version = 0;
    int r;
    while ((r = onnx_next_field(model, &message, &field, err)) > 0) {
        if (onnx_key(&field) == ONNX_KEY(OPSET_DOMAIN, PROTOBUF_BYTES)) {
            domain = field.bytes;
        } else if (onnx_key(&field) == ONNX_KEY(OPSET_VERSION, PROTOBUF_VARINT)) {
            version = (int64_t)field.value;
        }
    }
    if (r == 0 && (domain.len == 0 || onnx_text_is(domain, "ai.onnx"))) {
        model->opset = version;
    }
    return r;
}

static int read_model_field(struct onnx_model *model, const struct protobuf_field *field,
                            struct error *err) {
    switch (onnx_key(field)) {
    case ONNX_KEY(MODEL_IR_VERSION, PROTOBUF_VARINT):
        model->ir_version = (int64_t)field->value;
        return 0;
    case ONNX_KEY(MODEL_PRODUCER_NAME, PROTOBUF_BYTES):
        model->producer_name = field->bytes;
        return 0;
    case ONNX_KEY(MODEL_PRODUCER_VERSION, PROTOBUF_BYTES):
        model->producer_version = field->bytes;
        return 0;
    case ONNX_KEY(MODEL_OPSET_IMPORT, PROTOBUF_BYTES):
        return read_opset(model, field->bytes, err);
    case ONNX_KEY(MODEL_FUNCTION, PROTOBUF_BYTES):
        return read_function(model, field->bytes, err);
    case ONNX_KEY(MODEL_GRAPH, PROTOBUF_BYTES):
        /* Written twice, a message is the sum of both. */
        if (model->graph == NULL) {
            model->graph = onnx_graph_add(model, NULL, field->bytes.data);
        }
        return model->graph != NULL ? onnx_graph_read(model, field->bytes, model->graph, err)
                                    : onnx_out_of_memory(model, err);
    default:
        return 0;
    }
}

int onnx_model_read(struct onnx_model *model, struct error *err) {
    struct protobuf message = model->file;
    struct protobuf_field field;
    int r;
    while ((r = onnx_next_field(model, &message, &field, err)) > 0) {
        r = read_model_field(model, &field, err);
        if (r < 0) {
            return r;
        }
    }
    if (r == 0 && model->graph == NULL) {
        return error_set(err, -EINVAL, "not an ONNX model: it has no graph");
    }
    return r;
}

void onnx_model_finish(struct onnx_model *model) {
    hash_index_finish(&model->values);
    arena_finish(&model->arena);
}
