#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "exporter/core/arena.h"
#include "exporter/core/error.h"
#include "exporter/core/hash.h"
#include "exporter/core/protobuf.h"

/* The layers and shapes of an ONNX model: texts and tensors point into the file, whose weights are
 * never read. */

enum {
    ONNX_MAX_DEPTH = 16, /* graphs within graphs */
    ONNX_MAX_RANK = 32,
    ONNX_MAX_MEMORY = 256 << 20, /* of a graph, by default */
};

struct onnx_dims {
    size_t n;
    int64_t at[ONNX_MAX_RANK];
};

/* A tensor in the file: its shape, and where its numbers are. */
struct onnx_tensor {
    const int64_t *dims;
    size_t n_dims;
    uint64_t n_elements;
    int64_t data_type;
    int64_t location; /* 1: its numbers are in another file */
    struct protobuf name;
    struct protobuf raw;    /* little-endian */
    struct protobuf floats; /* packed */
    struct protobuf int64s; /* packed */
};

/* The known shape of a value; a dimension that is not fixed is -1. */
struct onnx_shape {
    bool known;
    size_t n_dims;
    const int64_t *dims;
    int64_t data_type;
};

/* A named value: an input, a weight, or the result of a node. */
struct onnx_value {
    struct protobuf name;
    struct onnx_graph *graph;
    struct onnx_node *producer;       /* the last node that makes it, or NULL */
    const struct onnx_tensor *tensor; /* an initializer's or a Constant's, or NULL */
    bool is_initializer;
    bool is_input;
    struct onnx_shape shape;
};

/* A row of a graph's inputs or outputs. */
struct onnx_port {
    struct onnx_port *next;
    const struct onnx_value *value;
    struct onnx_shape shape;
};

struct onnx_node {
    struct onnx_node *next;
    struct protobuf message;
    struct protobuf op_type;
    struct protobuf domain;
    struct onnx_value **inputs;
    struct onnx_value **outputs;
    struct onnx_graph *subgraphs;
    size_t n_inputs;
    size_t n_outputs;
};

struct onnx_graph {
    struct onnx_graph *parent;
    struct onnx_graph *next; /* of the model's functions, or of a node */
    size_t depth;
    struct onnx_node *nodes;
    struct onnx_node **last_node;
    size_t n_nodes;
    struct onnx_port *inputs;
    struct onnx_port **last_input;
    struct onnx_port *outputs;
    struct onnx_port **last_output;
    uint64_t n_parameters; /* elements of all initializers */
    uint64_t n_sparse_values;
    uint64_t n_weight_bytes;
    struct protobuf name;   /* of a function */
    struct protobuf domain; /* of a function */
    const char *start;
};

struct onnx_model {
    struct protobuf file;
    bool mapped;        /* pages of the file may be given back */
    struct arena arena; /* `max`: 0 is ONNX_MAX_MEMORY */
    int status;         /* 0, or of the first failure, which ends all reading */
    struct error *err;  /* its text */
    struct hash_index values;
    struct onnx_graph *graph;
    struct onnx_graph *functions;
    struct protobuf producer_name;
    struct protobuf producer_version;
    int64_t ir_version;
    int64_t opset;
    bool has_external_data;
};

/* Reads a model whose file stays in memory while the result is used. -EINVAL with the byte at which
 * it is wrong, or -EFBIG if its graph takes too much memory. `model` is zeroed but for `file`,
 * `mapped` and `arena.max`. */
int onnx_model_read(struct onnx_model *model, struct error *err);
void onnx_model_finish(struct onnx_model *model);
#define CLEANUP_ONNX_MODEL CLEANUP(onnx_model_finish)

/* Maps the file at `path` and reads it into `ret_model`, which is zeroed; texts and tensors point
 * into the mapping. Errors name the file. */
int onnx_file_open(const char *path, struct onnx_model *ret_model, struct error *err);

/* Unmaps and frees. */
void onnx_file_close(struct onnx_model *model);
#define CLEANUP_ONNX_FILE CLEANUP(onnx_file_close)

/* The value as its graph or one around it defines it. */
const struct onnx_value *onnx_value_resolve(const struct onnx_model *model,
                                            const struct onnx_value *value);

/* Memory that lasts as long as the model. A short file can ask for much, so it is limited: NULL
 * fails the model. */
void *onnx_take(struct onnx_model *model, size_t n);
void *onnx_keep(struct onnx_model *model, const void *data, size_t n);

/* Fails the model at a place in the file: "byte 17: …". */
void onnx_fail(struct onnx_model *model, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A field of a message, with its number in onnx.proto. `read` takes it; if there is none, and no
 * table of `message` for the fields within, the value is stored at `offset`. */
struct onnx_field {
    uint32_t number;
    enum protobuf_wire wire;
    size_t offset; /* of a struct protobuf or an int64_t */
    const struct onnx_field *message;
    void (*read)(struct onnx_model *model, const struct protobuf_field *field, void *to);
};

enum { ONNX_NODE_ATTRIBUTE = 5 };

/* Reads the fields of a message that `rows` has, which end at number 0, into the struct at `to`.
 * Others, and those of an unexpected type, are skipped, as every reader of protobuf does. */
void onnx_read(struct onnx_model *model, struct protobuf message, const struct onnx_field *rows,
               void *to);

/* Reads a TensorProto. */
void onnx_tensor_read(struct onnx_model *model, struct protobuf message, struct onnx_tensor *ret);

/* Reads the shape of a ValueInfoProto and its name. */
void onnx_value_info_read(struct onnx_model *model, struct protobuf message,
                          struct onnx_shape *ret_shape, struct protobuf *ret_name);

/* The whole numbers of a small tensor; false if they cannot be read. */
bool onnx_tensor_ints(const struct onnx_tensor *tensor, struct onnx_dims *ret);

/* Up to `max` fractions of single precision: how many, or -1 if they cannot be read. */
int onnx_tensor_floats(const struct onnx_tensor *tensor, float *out, size_t max);

/* Bytes of one element, 0 if it has no fixed size. Types of less than a byte count as one. */
size_t onnx_type_size(int64_t data_type);

/* "float"; "other" of rare ones. */
const char *onnx_type_name(int64_t data_type);

/* Attributes of a node; `fallback`, an empty text or false if there is none. */
int64_t onnx_attribute_int(const struct onnx_node *node, const char *name, int64_t fallback);
struct protobuf onnx_attribute_text(const struct onnx_node *node, const char *name);
bool onnx_attribute_ints(const struct onnx_node *node, const char *name, struct onnx_dims *ret);

static inline bool onnx_text_is(struct protobuf text, const char *is) {
    return text.len == strlen(is) && memcmp(text.data, is, text.len) == 0;
}

/* Sums and products that stop at UINT64_MAX. */
static inline uint64_t onnx_add(uint64_t a, uint64_t b) {
    return __builtin_add_overflow(a, b, &a) ? UINT64_MAX : a;
}
static inline uint64_t onnx_multiply(uint64_t a, uint64_t b) {
    return __builtin_mul_overflow(a, b, &a) ? UINT64_MAX : a;
}

static inline uint64_t onnx_tensor_bytes(const struct onnx_tensor *tensor) {
    return onnx_multiply(tensor->n_elements, onnx_type_size(tensor->data_type));
}
