#include "placement/onnx/graph.h"

/* Nodes stand in the order in which they can be computed, so a producer that stands further down is
 * suspect. Only then the graph is walked through from outputs to inputs. */

enum { UNSEEN, OPEN, DONE };

static struct onnx_node *producer_of(const struct onnx_graph *graph,
                                     const struct onnx_value *value) {
    return value->graph == graph ? value->producer : NULL;
}

static bool is_sorted(const struct onnx_graph *graph) {
    for (const struct onnx_node *node = graph->nodes; node != NULL; node = node->next) {
        for (size_t i = 0; i < node->n_inputs; i++) {
            const struct onnx_node *producer = producer_of(graph, node->inputs[i]);
            if (producer != NULL && producer->index >= node->index &&
                node->inputs[i]->name.len > 0) {
                return false;
            }
        }
    }
    return true;
}

/* The next producer to visit below the top of the path, or NULL. */
static struct onnx_node *next_producer(const struct onnx_graph *graph, struct onnx_node *node) {
    while (node->next_input < node->n_inputs) {
        const struct onnx_value *value = node->inputs[node->next_input++];
        struct onnx_node *producer = value->name.len > 0 ? producer_of(graph, value) : NULL;
        if (producer != NULL && producer->mark != DONE) {
            return producer;
        }
    }
    return NULL;
}

/* Depth first, with the path in `path` instead of on the stack. */
static const struct onnx_node *find_circle(const struct onnx_graph *graph, struct onnx_node *start,
                                           struct onnx_node **path) {
    size_t depth = 0;
    path[depth++] = start;
    start->mark = OPEN;
    while (depth > 0) {
        struct onnx_node *top = path[depth - 1];
        struct onnx_node *producer = next_producer(graph, top);
        if (producer == NULL) {
            top->mark = DONE;
            depth--;
        } else if (producer->mark == OPEN) {
            return producer;
        } else {
            producer->mark = OPEN;
            path[depth++] = producer;
        }
    }
    return NULL;
}

int onnx_graph_check_order(const struct onnx_model *model, struct onnx_graph *graph,
                           struct error *err) {
    if (is_sorted(graph)) {
        return 0;
    }
    struct onnx_node **path CLEANUP_FREE = calloc(graph->n_nodes, sizeof(*path));
    if (path == NULL) {
        return onnx_out_of_memory(model, err);
    }
    for (struct onnx_node *node = graph->nodes; node != NULL; node = node->next) {
        const struct onnx_node *in_circle =
            node->mark == UNSEEN ? find_circle(graph, node, path) : NULL;
        if (in_circle != NULL) {
            return onnx_fail(model, in_circle->message.data, err,
                             "a node of type %.*s that is fed with its own result",
                             (int)(in_circle->op_type.len < 64 ? in_circle->op_type.len : 64),
                             in_circle->op_type.data != NULL ? in_circle->op_type.data : "");
        }
    }
    return 0;
}
