#include "placement/onnx/graph.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "exporter/core/hash.h"
#include "exporter/core/memory.h"

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

/* Smaller tensors are not worth a system call. */
enum { RELEASE_MIN = 128 << 10 };

/* Memory of one value in the index: half of its slots stay free, and it doubles. */
enum { INDEX_SHARE = 4 * sizeof(struct hash_index_slot) };

void onnx_fail(struct onnx_model *model, const char *at, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (model->status == 0) {
        model->status =
            error_set(model->err, -EINVAL, "byte %zu: %s", (size_t)(at - model->file.data), text);
    }
}

bool onnx_next_field(struct onnx_model *model, struct protobuf *message,
                     struct protobuf_field *ret_field) {
    const char *at = message->data;
    int r = model->status < 0 ? 0 : protobuf_next(message, ret_field);
    if (r < 0) {
        onnx_fail(model, at, "not a field: not an ONNX model, or truncated");
    }
    return r > 0;
}

/* Fails the model if there was no memory. */
static void *check(struct onnx_model *model, void *memory) {
    if (memory == NULL && model->status == 0) {
        model->status = error_set(
            model->err, -EFBIG, "its graph takes more than %zu bytes of memory", model->arena.max);
    }
    return memory;
}

void *onnx_take(struct onnx_model *model, size_t n) {
    return check(model, arena_take(&model->arena, n));
}

void *onnx_keep(struct onnx_model *model, const void *data, size_t n) {
    return check(model, arena_copy(&model->arena, data, n));
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

/* The value of a name, added if it is new; NULL fails the model. Names in a mapped file are copied:
 * those of weights are between the weights, in pages that are given back. */
static struct onnx_value *add_value(struct onnx_model *model, struct onnx_graph *graph,
                                    struct protobuf name) {
    struct onnx_value *value = find_value(model, graph, name);
    if (value == NULL) {
        value = onnx_take(model, sizeof(*value));
        const char *kept = model->mapped ? onnx_keep(model, name.data, name.len) : name.data;
        bool has_room = arena_charge(&model->arena, INDEX_SHARE);
        if (kept == NULL || check(model, has_room ? value : NULL) == NULL) {
            return NULL;
        }
        *value = (struct onnx_value){.name = {kept, name.len}, .graph = graph};
        hash_index_add(&model->values, hash_of(graph, name), value);
    }
    return value;
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

static void read_graph(struct onnx_model *model, struct protobuf message, struct onnx_graph *graph);

/* A graph in an attribute: a branch of If, the body of Loop or Scan. */
static void read_subgraph(struct onnx_model *model, struct protobuf message,
                          struct onnx_graph *parent, struct onnx_node *node) {
    if (parent->depth + 1 >= ONNX_MAX_DEPTH) {
        onnx_fail(model, message.data, "graphs nested more than %d deep", ONNX_MAX_DEPTH);
        return;
    }
    struct onnx_graph *graph = add_graph(model, parent, message.data);
    if (graph != NULL) {
        graph->next = node->subgraphs;
        node->subgraphs = graph;
        read_graph(model, message, graph);
    }
}

/* Weights in a Constant node instead of among the initializers. */
static void read_constant(struct onnx_model *model, struct protobuf message,
                          struct onnx_node *node) {
    struct onnx_tensor *tensor = onnx_take(model, sizeof(*tensor));
    struct protobuf name;
    if (tensor != NULL) {
        onnx_tensor_read(model, message, tensor, &name);
        if (node->n_outputs > 0 && onnx_text_is(node->op_type, "Constant")) {
            node->outputs[0]->tensor = tensor;
        }
    }
}

static void read_attribute(struct onnx_model *model, struct protobuf message,
                           struct onnx_graph *graph, struct onnx_node *node) {
    struct protobuf_field field;
    while (onnx_next_field(model, &message, &field)) {
        switch (onnx_key(&field)) {
        case ONNX_KEY(ATTRIBUTE_TENSOR, PROTOBUF_BYTES):
            read_constant(model, field.bytes, node);
            break;
        case ONNX_KEY(ATTRIBUTE_GRAPH, PROTOBUF_BYTES):
        case ONNX_KEY(ATTRIBUTE_GRAPHS, PROTOBUF_BYTES):
            read_subgraph(model, field.bytes, graph, node);
            break;
        default:
            break;
        }
    }
}

/* The first pass over a node counts what the second one fills in. */
static void measure_node(struct onnx_model *model, struct onnx_node *node) {
    struct protobuf message = node->message;
    struct protobuf_field field;
    while (onnx_next_field(model, &message, &field)) {
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
        default:
            break;
        }
    }
}

static void fill_names(struct onnx_model *model, struct onnx_graph *graph, struct onnx_node *node) {
    struct protobuf message = node->message;
    struct protobuf_field field;
    size_t n_inputs = 0, n_outputs = 0;
    while (onnx_next_field(model, &message, &field)) {
        uint32_t key = onnx_key(&field);
        if (key == ONNX_KEY(NODE_INPUT, PROTOBUF_BYTES)) {
            node->inputs[n_inputs++] = add_value(model, graph, field.bytes);
        } else if (key == ONNX_KEY(NODE_OUTPUT, PROTOBUF_BYTES)) {
            struct onnx_value *value = add_value(model, graph, field.bytes);
            node->outputs[n_outputs++] = value;
            if (value != NULL) {
                value->producer = node;
            }
        }
    }
}

/* Reads a NodeProto, with the graphs in its attributes, and appends it to the graph. */
static void read_node(struct onnx_model *model, struct protobuf message, struct onnx_graph *graph) {
    struct onnx_node *node = onnx_take(model, sizeof(*node));
    if (node == NULL) {
        return;
    }
    *node = (struct onnx_node){.message = message};
    graph->n_nodes++;
    *graph->last_node = node;
    graph->last_node = &node->next;
    measure_node(model, node);
    node->inputs = onnx_take(model, node->n_inputs * sizeof(void *));
    node->outputs = onnx_take(model, node->n_outputs * sizeof(void *));
    fill_names(model, graph, node);
    struct protobuf_field field;
    while (onnx_next_field(model, &message, &field)) {
        if (onnx_key(&field) == ONNX_KEY(NODE_ATTRIBUTE, PROTOBUF_BYTES)) {
            read_attribute(model, field.bytes, graph, node);
        }
    }
}

/* ---- graphs ---- */

static void add_sum(struct onnx_model *model, const char *at, uint64_t *sum, uint64_t n) {
    if (__builtin_add_overflow(*sum, n, sum) || *sum > INT64_MAX) {
        onnx_fail(model, at, "tensors of more elements than can be counted");
    }
}

static void read_initializer(struct onnx_model *model, struct protobuf message,
                             struct onnx_graph *graph) {
    struct onnx_tensor *tensor = onnx_take(model, sizeof(*tensor));
    struct protobuf name;
    if (tensor == NULL) {
        return;
    }
    onnx_tensor_read(model, message, tensor, &name);
    add_sum(model, message.data, &graph->n_parameters, tensor->n_elements);
    graph->n_weight_bytes =
        onnx_add(graph->n_weight_bytes,
                 onnx_multiply(tensor->n_elements, onnx_type_size(tensor->data_type)));
    struct onnx_value *value = add_value(model, graph, name);
    if (value != NULL) {
        value->tensor = tensor;
        value->is_initializer = true;
        release(model, message);
    }
}

static void read_sparse(struct onnx_model *model, struct protobuf message,
                        struct onnx_graph *graph) {
    struct protobuf_field field;
    while (onnx_next_field(model, &message, &field)) {
        struct onnx_tensor tensor;
        struct protobuf name;
        if (onnx_key(&field) == ONNX_KEY(SPARSE_VALUES, PROTOBUF_BYTES)) {
            onnx_tensor_read(model, field.bytes, &tensor, &name);
            add_sum(model, field.bytes.data, &graph->n_sparse_values, tensor.n_elements);
        }
    }
}

static void add_port(struct onnx_model *model, struct onnx_port ***last,
                     const struct onnx_value *value) {
    struct onnx_port *port = onnx_take(model, sizeof(*port));
    if (port != NULL) {
        *port = (struct onnx_port){.value = value, .shape = value->shape};
        **last = port;
        *last = &port->next;
    }
}

static void read_value_info(struct onnx_model *model, const struct protobuf_field *field,
                            struct onnx_graph *graph) {
    struct onnx_shape shape;
    struct protobuf name;
    onnx_value_info_read(model, field->bytes, &shape, &name);
    struct onnx_value *value = add_value(model, graph, name);
    if (value == NULL) {
        return;
    }
    value->shape = shape;
    if (field->number == GRAPH_INPUT) {
        value->is_input = true;
        add_port(model, &graph->last_input, value);
    } else if (field->number == GRAPH_OUTPUT) {
        add_port(model, &graph->last_output, value);
    }
}

/* Reads a GraphProto into a graph that may hold something already. */
static void read_graph(struct onnx_model *model, struct protobuf message,
                       struct onnx_graph *graph) {
    struct protobuf_field field;
    while (onnx_next_field(model, &message, &field)) {
        switch (onnx_key(&field)) {
        case ONNX_KEY(GRAPH_NODE, PROTOBUF_BYTES):
            read_node(model, field.bytes, graph);
            break;
        case ONNX_KEY(GRAPH_INITIALIZER, PROTOBUF_BYTES):
            read_initializer(model, field.bytes, graph);
            break;
        case ONNX_KEY(GRAPH_SPARSE_INITIALIZER, PROTOBUF_BYTES):
            read_sparse(model, field.bytes, graph);
            break;
        case ONNX_KEY(GRAPH_INPUT, PROTOBUF_BYTES):
        case ONNX_KEY(GRAPH_OUTPUT, PROTOBUF_BYTES):
        case ONNX_KEY(GRAPH_VALUE_INFO, PROTOBUF_BYTES):
            read_value_info(model, &field, graph);
            break;
        default:
            break;
        }
    }
}

static void read_function(struct onnx_model *model, struct protobuf message) {
    struct onnx_graph *function = add_graph(model, NULL, message.data);
    if (function == NULL) {
        return;
    }
    function->next = model->functions;
    model->functions = function;
    struct protobuf_field field;
    while (onnx_next_field(model, &message, &field)) {
        switch (onnx_key(&field)) {
        case ONNX_KEY(FUNCTION_NAME, PROTOBUF_BYTES):
            function->name = field.bytes;
            break;
        case ONNX_KEY(FUNCTION_DOMAIN, PROTOBUF_BYTES):
            function->domain = field.bytes;
            break;
        case ONNX_KEY(FUNCTION_NODE, PROTOBUF_BYTES):
            read_node(model, field.bytes, function);
            break;
        default:
            break;
        }
    }
}

/* The version of the operators without a domain, or of the domain "ai.onnx", which is the same. */
static void read_opset(struct onnx_model *model, struct protobuf message) {
    struct protobuf_field field;
    struct protobuf domain = {0};
    int64_t version = 0;
    while (onnx_next_field(model, &message, &field)) {
        if (onnx_key(&field) == ONNX_KEY(OPSET_DOMAIN, PROTOBUF_BYTES)) {
            domain = field.bytes;
        } else if (onnx_key(&field) == ONNX_KEY(OPSET_VERSION, PROTOBUF_VARINT)) {
            version = (int64_t)field.value;
        }
    }
    if (domain.len == 0 || onnx_text_is(domain, "ai.onnx")) {
        model->opset = version;
    }
}

static void read_model_field(struct onnx_model *model, const struct protobuf_field *field) {
    switch (onnx_key(field)) {
    case ONNX_KEY(MODEL_IR_VERSION, PROTOBUF_VARINT):
        model->ir_version = (int64_t)field->value;
        break;
    case ONNX_KEY(MODEL_PRODUCER_NAME, PROTOBUF_BYTES):
        model->producer_name = field->bytes;
        break;
    case ONNX_KEY(MODEL_PRODUCER_VERSION, PROTOBUF_BYTES):
        model->producer_version = field->bytes;
        break;
    case ONNX_KEY(MODEL_OPSET_IMPORT, PROTOBUF_BYTES):
        read_opset(model, field->bytes);
        break;
    case ONNX_KEY(MODEL_FUNCTION, PROTOBUF_BYTES):
        read_function(model, field->bytes);
        break;
    case ONNX_KEY(MODEL_GRAPH, PROTOBUF_BYTES):
        /* Written twice, a message is the sum of both. */
        if (model->graph == NULL) {
            model->graph = add_graph(model, NULL, field->bytes.data);
        }
        if (model->graph != NULL) {
            read_graph(model, field->bytes, model->graph);
        }
        break;
    default:
        break;
    }
}

int onnx_model_read(struct onnx_model *model, struct error *err) {
    struct protobuf message = model->file;
    struct protobuf_field field;
    model->err = err;
    model->arena.max = model->arena.max > 0 ? model->arena.max : ONNX_MAX_MEMORY;
    while (onnx_next_field(model, &message, &field)) {
        read_model_field(model, &field);
    }
    if (model->status == 0 && model->graph == NULL) {
        return error_set(err, -EINVAL, "not an ONNX model: it has no graph");
    }
    return model->status;
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
