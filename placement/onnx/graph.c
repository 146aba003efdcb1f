#include "placement/onnx/graph.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "exporter/core/hash.h"

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
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    ATTRIBUTE_TENSOR = 5,
    ATTRIBUTE_GRAPH = 6,
    ATTRIBUTE_GRAPHS = 11,
};

/* ---- reading and memory ---- */

/* Below it there is little to give back. */
enum { RELEASE_MIN = 128 << 10 };

/* Of the index of values; half of its slots stay free, and it doubles. */
enum { INDEX_SHARE = 4 * sizeof(struct hash_index_slot) };

int onnx_fail(const struct onnx_model *model, const char *at, struct error *err, const char *format,
              ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return error_set(err, -EINVAL, "byte %zu: %s", (size_t)(at - model->file.data), text);
}

int onnx_next_field(const struct onnx_model *model, struct protobuf *message,
                    struct protobuf_field *ret_field, struct error *err) {
    const char *at = message->data;
    int r = protobuf_next(message, ret_field);
    if (r < 0) {
        onnx_fail(model, at, err, "not a field: no ONNX model, or one that is cut off");
    }
    return r;
}

static size_t max_memory(const struct onnx_model *model) {
    return model->max_memory > 0 ? model->max_memory : ONNX_MAX_MEMORY;
}

static bool has_room(struct onnx_model *model, size_t n) {
    n = (n + _Alignof(max_align_t) - 1) &
        ~(_Alignof(max_align_t) - 1); /* no less than the arena does */
    model->is_full = model->is_full || n > max_memory(model) - model->taken;
    model->taken += model->is_full ? 0 : n;
    return !model->is_full;
}

void *onnx_take(struct onnx_model *model, size_t n) {
    return has_room(model, n) ? arena_take(&model->arena, n) : NULL;
}

void *onnx_keep(struct onnx_model *model, const void *data, size_t n) {
    return has_room(model, n) ? arena_copy(&model->arena, data, n) : NULL;
}

int onnx_out_of_memory(const struct onnx_model *model, struct error *err) {
    return model->is_full ? error_set(err, -EFBIG, "its graph takes more than %zu bytes of memory",
                                      max_memory(model))
                          : error_set(err, -ENOMEM, "out of memory");
}

static uint64_t hash_of(const struct onnx_graph *graph, struct protobuf name) {
    return hash_bytes(name.data, name.len) ^ (uint64_t)(uintptr_t)graph;
}

static struct onnx_value *find_value(const struct onnx_model *model, const struct onnx_graph *graph,
                                     struct protobuf name) {
    uint64_t hash = hash_of(graph, name);
    size_t cursor = 0;
    struct onnx_value *value;
    while ((value = hash_index_next(&model->values, hash, &cursor)) != NULL) {
        if (value->graph == graph && value->name.len == name.len &&
            memcmp(value->name.data, name.data, name.len) == 0) {
            break;
        }
    }
    return value;
}

/* Names in a mapped file are copied: those of weights stand between the weights, in pages that are
 * given back. */
static int add_value(struct onnx_model *model, struct onnx_graph *graph, struct protobuf name,
                     struct onnx_value **ret_value, struct error *err) {
    struct onnx_value *value = find_value(model, graph, name);
    if (value == NULL) {
        value = onnx_take(model, sizeof(*value));
        const char *kept = model->mapped ? onnx_keep(model, name.data, name.len) : name.data;
        if (value == NULL || kept == NULL || !has_room(model, INDEX_SHARE) ||
            !hash_index_reserve(&model->values, 1)) {
            return onnx_out_of_memory(model, err);
        }
        *value = (struct onnx_value){.name = {kept, name.len}, .graph = graph};
        hash_index_add(&model->values, hash_of(graph, name), value);
    }
    *ret_value = value;
    return 0;
}

const struct onnx_value *onnx_value_resolve(const struct onnx_model *model,
                                            const struct onnx_value *value) {
    const struct onnx_graph *graph = value->graph;
    const struct onnx_value *found = value;
    while (found->producer == NULL && found->tensor == NULL && !found->is_input &&
           graph->parent != NULL) {
        graph = graph->parent;
        const struct onnx_value *outer = find_value(model, graph, value->name);
        found = outer != NULL ? outer : found;
    }
    return found;
}

/* Gives back the pages of a large tensor: the kernel maps many around each one that is touched. */
static void release(const struct onnx_model *model, struct protobuf message) {
    if (!model->mapped || message.len < RELEASE_MIN) {
        return;
    }
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)message.data) & ~(page - 1);
    uintptr_t end = ((uintptr_t)message.data + message.len) & ~(page - 1);
    madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* ---- order of nodes ---- */

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

/* Fails if nodes feed themselves in a circle. */
static int check_order(const struct onnx_model *model, struct onnx_graph *graph,
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

/* ---- nodes ---- */

/* An empty graph in `parent` (NULL: on its own) whose message begins at `start`; NULL if the model
 * may take no more memory. */
static struct onnx_graph *add_graph(struct onnx_model *model, struct onnx_graph *parent,
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

static int read_graph(struct onnx_model *model, struct protobuf message, struct onnx_graph *graph,
                      struct error *err);

/* A graph in an attribute: a branch of If, the body of Loop or Scan. */
static int read_subgraph(struct onnx_model *model, struct protobuf message,
                         struct onnx_graph *parent, struct onnx_node *node, struct error *err) {
    if (parent->depth + 1 >= ONNX_MAX_DEPTH) {
        return onnx_fail(model, message.data, err, "graphs within graphs more than %d deep",
                         ONNX_MAX_DEPTH);
    }
    struct onnx_graph *graph = add_graph(model, parent, message.data);
    if (graph == NULL) {
        return onnx_out_of_memory(model, err);
    }
    node->subgraphs[node->n_subgraphs++] = graph;
    return read_graph(model, message, graph, err);
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
            r = add_value(model, graph, field.bytes, &node->inputs[n_inputs++], err);
        } else if (key == ONNX_KEY(NODE_OUTPUT, PROTOBUF_BYTES)) {
            r = add_value(model, graph, field.bytes, &node->outputs[n_outputs], err);
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

static int read_node(struct onnx_model *model, struct protobuf message, struct onnx_graph *graph,
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

/* ---- graphs ---- */

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
    r = add_value(model, graph, name, &value, err);
    if (r == 0) {
        value->tensor = tensor;
        value->is_initializer = true;
        release(model, message);
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
    r = r < 0 ? r : add_value(model, graph, name, &value, err);
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
        return read_node(model, field->bytes, graph, err);
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

static int read_graph(struct onnx_model *model, struct protobuf message, struct onnx_graph *graph,
                      struct error *err) {
    struct protobuf_field field;
    int r;
    while ((r = onnx_next_field(model, &message, &field, err)) > 0) {
        r = read_graph_field(model, &field, graph, err);
        if (r < 0) {
            return r;
        }
    }
    return r < 0 ? r : check_order(model, graph, err);
}

static int read_function(struct onnx_model *model, struct protobuf message, struct error *err) {
    struct onnx_graph *function = add_graph(model, NULL, message.data);
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
            r = read_node(model, field.bytes, function, err);
            break;
        default:
            break;
        }
        if (r < 0) {
            return r;
        }
    }
    return r < 0 ? r : check_order(model, function, err);
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
            model->graph = add_graph(model, NULL, field->bytes.data);
        }
        return model->graph != NULL ? read_graph(model, field->bytes, model->graph, err)
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

/* ---- files ---- */

void onnx_file_close(struct onnx_model *model) {
    onnx_model_finish(model);
    if (model->mapped) {
        munmap((void *)model->file.data, model->file.len);
    }
    *model = (struct onnx_model){.mapped = false};
}

int onnx_file_open(const char *path, struct onnx_model *ret_model, struct error *err) {
    /* O_NONBLOCK: opening a pipe without a writer would block. */
    int fd CLEANUP_CLOSE = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0) {
        return error_set(err, -errno, "open %s: %m", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return error_set(err, -EINVAL, "%s: not a regular file", path);
    }
    if (status.st_size == 0) {
        return error_set(err, -EINVAL, "%s: empty file", path);
    }
    void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        return error_set(err, -errno, "map %s: %m", path);
    }
    madvise(data, (size_t)status.st_size, MADV_RANDOM); /* no reading ahead into the weights */
    *ret_model = (struct onnx_model){.file = {data, (size_t)status.st_size}, .mapped = true};
    struct error why = {0};
    int r = onnx_model_read(ret_model, &why);
    if (r < 0) {
        onnx_file_close(ret_model);
        return error_set(err, r, "%s: %s", path, why.text);
    }
    return 0;
}
