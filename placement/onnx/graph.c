#include "placement/onnx/graph.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "exporter/core/hash.h"
#include "exporter/core/memory.h"

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

/* The row of a table that takes a field, or NULL. */
static const struct onnx_field *find_row(const struct onnx_field *rows,
                                         const struct protobuf_field *field) {
    for (; rows->number != 0; rows++) {
        if (rows->number == field->number && rows->wire == field->wire) {
            return rows;
        }
    }
    return NULL;
}

void onnx_read(struct onnx_model *model, struct protobuf message, const struct onnx_field *rows,
               void *to) {
    struct protobuf_field field;
    const char *at = message.data;
    int r = 0;
    while (model->status == 0 && (r = protobuf_next(&message, &field)) > 0) {
        const struct onnx_field *row = find_row(rows, &field);
        if (row != NULL && row->read != NULL) {
            row->read(model, &field, to);
        } else if (row != NULL && row->message != NULL) {
            onnx_read(model, field.bytes, row->message, to);
        } else if (row != NULL && row->wire == PROTOBUF_BYTES) {
            *(struct protobuf *)((char *)to + row->offset) = field.bytes;
        } else if (row != NULL) {
            *(int64_t *)((char *)to + row->offset) = (int64_t)field.value;
        }
        at = message.data;
    }
    if (r < 0) {
        onnx_fail(model, at, "not a field: not an ONNX model, or truncated");
    }
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

static const struct onnx_field graph_fields[];

/* A node that is read, and the graph that it is in. */
struct reading {
    struct onnx_graph *graph;
    struct onnx_node *node;
    size_t n_inputs, n_outputs; /* so far */
};

/* A graph in an attribute: a branch of If, the body of Loop or Scan. */
static void read_subgraph(struct onnx_model *model, const struct protobuf_field *field, void *to) {
    const struct reading *in = to;
    if (in->graph->depth + 1 >= ONNX_MAX_DEPTH) {
        onnx_fail(model, field->bytes.data, "graphs nested more than %d deep", ONNX_MAX_DEPTH);
        return;
    }
    struct onnx_graph *graph = add_graph(model, in->graph, field->bytes.data);
    if (graph != NULL) {
        graph->next = in->node->subgraphs;
        in->node->subgraphs = graph;
        onnx_read(model, field->bytes, graph_fields, graph);
    }
}

/* Weights in a Constant node instead of among the initializers. */
static void read_constant(struct onnx_model *model, const struct protobuf_field *field, void *to) {
    const struct onnx_node *node = ((const struct reading *)to)->node;
    struct onnx_tensor *tensor = onnx_take(model, sizeof(*tensor));
    if (tensor != NULL) {
        onnx_tensor_read(model, field->bytes, tensor);
        if (node->n_outputs > 0 && onnx_text_is(node->op_type, "Constant")) {
            node->outputs[0]->tensor = tensor;
        }
    }
}

static const struct onnx_field attribute_fields[] = {
    {5, PROTOBUF_BYTES, .read = read_constant},  /* t */
    {6, PROTOBUF_BYTES, .read = read_subgraph},  /* g */
    {11, PROTOBUF_BYTES, .read = read_subgraph}, /* graphs */
    {0},
};

enum { NODE_INPUT = 1, NODE_OUTPUT = 2 };

static void count_value(struct onnx_model *model, const struct protobuf_field *field, void *to) {
    (void)model;
    struct onnx_node *node = to;
    ++*(field->number == NODE_INPUT ? &node->n_inputs : &node->n_outputs);
}

static void read_value(struct onnx_model *model, const struct protobuf_field *field, void *to) {
    struct reading *in = to;
    struct onnx_value *value = add_value(model, in->graph, field->bytes);
    if (field->number == NODE_INPUT) {
        in->node->inputs[in->n_inputs++] = value;
    } else if (value != NULL) {
        in->node->outputs[in->n_outputs++] = value;
        value->producer = in->node;
    }
}

/* Three passes: the first counts what the second fills in; attributes need both. */
static const struct onnx_field node_fields[] = {
    {NODE_INPUT, PROTOBUF_BYTES, .read = count_value},
    {NODE_OUTPUT, PROTOBUF_BYTES, .read = count_value},
    {4, PROTOBUF_BYTES, offsetof(struct onnx_node, op_type)},
    {7, PROTOBUF_BYTES, offsetof(struct onnx_node, domain)},
    {0},
};
static const struct onnx_field value_fields[] = {
    {NODE_INPUT, PROTOBUF_BYTES, .read = read_value},
    {NODE_OUTPUT, PROTOBUF_BYTES, .read = read_value},
    {0},
};
static const struct onnx_field node_attributes[] = {
    {ONNX_NODE_ATTRIBUTE, PROTOBUF_BYTES, .message = attribute_fields},
    {0},
};

static void read_node(struct onnx_model *model, const struct protobuf_field *field, void *to) {
    struct onnx_graph *graph = to;
    struct onnx_node *node = onnx_take(model, sizeof(*node));
    if (node == NULL) {
        return;
    }
    *node = (struct onnx_node){.message = field->bytes};
    graph->n_nodes++;
    *graph->last_node = node;
    graph->last_node = &node->next;
    onnx_read(model, node->message, node_fields, node);
    node->inputs = onnx_take(model, node->n_inputs * sizeof(void *));
    node->outputs = onnx_take(model, node->n_outputs * sizeof(void *));
    struct reading in = {.graph = graph, .node = node};
    onnx_read(model, node->message, value_fields, &in);
    onnx_read(model, node->message, node_attributes, &in);
}

/* ---- graphs ---- */

static void add_sum(struct onnx_model *model, const char *at, uint64_t *sum, uint64_t n) {
    if (__builtin_add_overflow(*sum, n, sum) || *sum > INT64_MAX) {
        onnx_fail(model, at, "tensors of more elements than can be counted");
    }
}

static void read_initializer(struct onnx_model *model, const struct protobuf_field *field,
                             void *to) {
    struct onnx_graph *graph = to;
    struct onnx_tensor *tensor = onnx_take(model, sizeof(*tensor));
    if (tensor == NULL) {
        return;
    }
    onnx_tensor_read(model, field->bytes, tensor);
    add_sum(model, field->bytes.data, &graph->n_parameters, tensor->n_elements);
    graph->n_weight_bytes = onnx_add(graph->n_weight_bytes, onnx_tensor_bytes(tensor));
    struct onnx_value *value = add_value(model, graph, tensor->name);
    if (value != NULL) {
        value->tensor = tensor;
        value->is_initializer = true;
        release(model, field->bytes);
    }
}

static void read_sparse_values(struct onnx_model *model, const struct protobuf_field *field,
                               void *to) {
    struct onnx_graph *graph = to;
    struct onnx_tensor tensor;
    onnx_tensor_read(model, field->bytes, &tensor);
    add_sum(model, field->bytes.data, &graph->n_sparse_values, tensor.n_elements);
}

static const struct onnx_field sparse_fields[] = {
    {1, PROTOBUF_BYTES, .read = read_sparse_values},
    {0},
};

static void add_port(struct onnx_model *model, struct onnx_port ***last,
                     const struct onnx_value *value) {
    struct onnx_port *port = onnx_take(model, sizeof(*port));
    if (port != NULL) {
        *port = (struct onnx_port){.value = value, .shape = value->shape};
        **last = port;
        *last = &port->next;
    }
}

enum { GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, GRAPH_VALUE_INFO = 13 };

static void read_value_info(struct onnx_model *model, const struct protobuf_field *field,
                            void *to) {
    struct onnx_graph *graph = to;
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

static const struct onnx_field graph_fields[] = {
    {1, PROTOBUF_BYTES, .read = read_node},
    {5, PROTOBUF_BYTES, .read = read_initializer},
    {GRAPH_INPUT, PROTOBUF_BYTES, .read = read_value_info},
    {GRAPH_OUTPUT, PROTOBUF_BYTES, .read = read_value_info},
    {GRAPH_VALUE_INFO, PROTOBUF_BYTES, .read = read_value_info},
    {15, PROTOBUF_BYTES, .message = sparse_fields},
    {0},
};

/* ---- models ---- */

static const struct onnx_field function_fields[] = {
    {1, PROTOBUF_BYTES, offsetof(struct onnx_graph, name)},
    {7, PROTOBUF_BYTES, .read = read_node},
    {10, PROTOBUF_BYTES, offsetof(struct onnx_graph, domain)},
    {0},
};

static void read_function(struct onnx_model *model, const struct protobuf_field *field, void *to) {
    (void)to;
    struct onnx_graph *function = add_graph(model, NULL, field->bytes.data);
    if (function != NULL) {
        function->next = model->functions;
        model->functions = function;
        onnx_read(model, field->bytes, function_fields, function);
    }
}

/* Written twice, a message is the sum of both. */
static void read_graph(struct onnx_model *model, const struct protobuf_field *field, void *to) {
    (void)to;
    if (model->graph == NULL) {
        model->graph = add_graph(model, NULL, field->bytes.data);
    }
    onnx_read(model, field->bytes, graph_fields, model->graph);
}

struct opset {
    struct protobuf domain;
    int64_t version;
};

static const struct onnx_field opset_fields[] = {
    {1, PROTOBUF_BYTES, offsetof(struct opset, domain)},
    {2, PROTOBUF_VARINT, offsetof(struct opset, version)},
    {0},
};

/* The version of the operators without a domain, or of the domain "ai.onnx", which is the same. */
static void read_opset(struct onnx_model *model, const struct protobuf_field *field, void *to) {
    (void)to;
    struct opset opset = {.version = 0};
    onnx_read(model, field->bytes, opset_fields, &opset);
    if (opset.domain.len == 0 || onnx_text_is(opset.domain, "ai.onnx")) {
        model->opset = opset.version;
    }
}

static const struct onnx_field model_fields[] = {
    {1, PROTOBUF_VARINT, offsetof(struct onnx_model, ir_version)},
    {2, PROTOBUF_BYTES, offsetof(struct onnx_model, producer_name)},
    {3, PROTOBUF_BYTES, offsetof(struct onnx_model, producer_version)},
    {7, PROTOBUF_BYTES, .read = read_graph},
    {8, PROTOBUF_BYTES, .read = read_opset},
    {25, PROTOBUF_BYTES, .read = read_function},
    {0},
};

int onnx_model_read(struct onnx_model *model, struct error *err) {
    model->err = err;
    model->arena.max = model->arena.max > 0 ? model->arena.max : ONNX_MAX_MEMORY;
    onnx_read(model, model->file, model_fields, model);
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
