#include "placement/onnx/graph.h"

/* Field numbers of onnx.proto. */
enum {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    ATTRIBUTE_TENSOR = 5,
    ATTRIBUTE_GRAPH = 6,
    ATTRIBUTE_GRAPHS = 11,
};

/* A graph in an attribute: a branch of If, the body of Loop or Scan. */
static int read_subgraph(struct onnx_model *model, struct protobuf message,
                         struct onnx_graph *parent, struct onnx_node *node, struct error *err) {
    if (parent->depth + 1 >= ONNX_MAX_DEPTH) {
        return onnx_fail(model, message.data, err, "graphs within graphs more than %d deep",
                         ONNX_MAX_DEPTH);
    }
    struct onnx_graph *graph = onnx_graph_add(model, parent, message.data);
    if (graph == NULL) {
        return onnx_out_of_memory(model, err);
    }
    node->subgraphs[node->n_subgraphs++] = graph;
    return onnx_graph_read(model, message, graph, err);
}

/* Weights that stand in a Constant node instead of among the initializers. */
static int read_constant(struct onnx_model *model, struct protobuf message, struct onnx_node *node,
                         struct error *err) {
    struct onnx_tensor *tensor = onnx_take(model, sizeof(*tensor));
    if (tensor == NULL) {
        return onnx_out_of_memory(model, err);
    }
    struct protobuf name;
    int r = onnx_tensor_read(model, message, tensor, &name, err);
    if (r == 0 && node->n_outputs > 0 && onnx_text_is(node->op_type, "Constant")) {
        node->outputs[0]->tensor = tensor;
    }
    return r;
}

static int read_attribute(struct onnx_model *model, struct protobuf message,
                          struct onnx_graph *graph, struct onnx_node *node, struct error *err) {
    struct protobuf_field field;
    int r;
    while ((r = onnx_next_field(model, &message, &field, err)) > 0) {
        switch (onnx_key(&field)) {
        case ONNX_KEY(ATTRIBUTE_TENSOR, PROTOBUF_BYTES):
            r = read_constant(model, field.bytes, node, err);
            break;
        case ONNX_KEY(ATTRIBUTE_GRAPH, PROTOBUF_BYTES):
        case ONNX_KEY(ATTRIBUTE_GRAPHS, PROTOBUF_BYTES):
            r = read_subgraph(model, field.bytes, graph, node, err);
            break;
        default:
            break;
        }
        if (r < 0) {
            break;
        }
    }
    return r;
}

static int count_graphs(const struct onnx_model *model, struct protobuf attribute, size_t *count,
                        struct error *err) {
    struct protobuf_field field;
    int r;
    while ((r = onnx_next_field(model, &attribute, &field, err)) > 0) {
        uint32_t key = onnx_key(&field);
        *count += key == ONNX_KEY(ATTRIBUTE_GRAPH, PROTOBUF_BYTES) ||
                  key == ONNX_KEY(ATTRIBUTE_GRAPHS, PROTOBUF_BYTES);
    }
    return r;
}

/* A first walk over a node, for how much there is. */
static int measure_node(const struct onnx_model *model, struct onnx_node *node,
                        size_t *ret_n_subgraphs, struct error *err) {
    struct protobuf message = node->message;
    struct protobuf_field field;
    size_t n_subgraphs = 0;
    int r;
    while ((r = onnx_next_field(model, &message, &field, err)) > 0) {
        switch (onnx_key(&field)) {
        case ONNX_KEY(NODE_INPUT, PROTOBUF_BYTES):
            node->n_inputs++;
            break;
        case ONNX_KEY(NODE_OUTPUT, PROTOBUF_BYTES):
            node->n_outputs++;
            break;
        case ONNX_KEY(NODE_OP_TYPE, PROTOBUF_BYTES):
            node->op_type = field.bytes;
            break;
        case ONNX_KEY(NODE_DOMAIN, PROTOBUF_BYTES):
            node->domain = field.bytes;
            break;
        case ONNX_KEY(NODE_ATTRIBUTE, PROTOBUF_BYTES):
            r = count_graphs(model, field.bytes, &n_subgraphs, err);
            break;
        default:
            break;
        }
        if (r < 0) {
            break;
        }
    }
    *ret_n_subgraphs = n_subgraphs;
    return r;
}

static int fill_names(struct onnx_model *model, struct onnx_graph *graph, struct onnx_node *node,
                      struct error *err) {
    struct protobuf message = node->message;
    struct protobuf_field field;
    size_t n_inputs = 0, n_outputs = 0;
    int r = 0;
    while (r == 0 && protobuf_next(&message, &field) > 0) {
        uint32_t key = onnx_key(&field);
        if (key == ONNX_KEY(NODE_INPUT, PROTOBUF_BYTES)) {
            r = onnx_value_add(model, graph, field.bytes, &node->inputs[n_inputs++], err);
        } else if (key == ONNX_KEY(NODE_OUTPUT, PROTOBUF_BYTES)) {
            r = onnx_value_add(model, graph, field.bytes, &node->outputs[n_outputs], err);
            if (r == 0) {
                node->outputs[n_outputs++]->producer = node;
            }
        }
    }
    return r;
}

static int fill_attributes(struct onnx_model *model, struct onnx_graph *graph,
                           struct onnx_node *node, struct error *err) {
    struct protobuf message = node->message;
    struct protobuf_field field;
    int r = 0;
    while (r == 0 && protobuf_next(&message, &field) > 0) {
        if (onnx_key(&field) == ONNX_KEY(NODE_ATTRIBUTE, PROTOBUF_BYTES)) {
            r = read_attribute(model, field.bytes, graph, node, err);
        }
    }
    return r;
}

int onnx_node_read(struct onnx_model *model, struct protobuf message, struct onnx_graph *graph,
                   struct error *err) {
    struct onnx_node *node = onnx_take(model, sizeof(*node));
    if (node == NULL) {
        return onnx_out_of_memory(model, err);
    }
    *node = (struct onnx_node){.message = message, .index = graph->n_nodes++};
    *graph->last_node = node;
    graph->last_node = &node->next;
    size_t n_subgraphs;
    int r = measure_node(model, node, &n_subgraphs, err);
    if (r < 0) {
        return r;
    }
    node->inputs = onnx_take(model, node->n_inputs * sizeof(void *));
    node->outputs = onnx_take(model, node->n_outputs * sizeof(void *));
    node->subgraphs = onnx_take(model, n_subgraphs * sizeof(void *));
    if (node->inputs == NULL || node->outputs == NULL || node->subgraphs == NULL) {
        return onnx_out_of_memory(model, err);
    }
    r = fill_names(model, graph, node, err);
    return r < 0 ? r : fill_attributes(model, graph, node, err);
}
