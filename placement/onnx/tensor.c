#include "placement/onnx/graph.h"

/* Field numbers of onnx.proto. */
enum {
    TENSOR_DIMS = 1,
    TENSOR_DATA_TYPE = 2,
    TENSOR_FLOAT_DATA = 4,
    TENSOR_INT64_DATA = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW_DATA = 9,
    TENSOR_DATA_LOCATION = 14,
    VALUE_NAME = 1,
    VALUE_TYPE = 2,
    TYPE_TENSOR = 1,
    TENSOR_TYPE_ELEM = 1,
    TENSOR_TYPE_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
};

enum { TYPE_FLOAT = 1, TYPE_INT64 = 7, LOCATION_EXTERNAL = 1 };

struct dims {
    int64_t at[ONNX_MAX_RANK];
    size_t n;
    const char *start; /* of the tensor */
};

static void add_dim(struct onnx_model *model, const char *at, struct dims *dims, int64_t dim) {
    if (dims->n == ONNX_MAX_RANK) {
        onnx_fail(model, at, "a tensor of more than %d dimensions", ONNX_MAX_RANK);
        return;
    }
    dims->at[dims->n++] = dim;
}

/* Numbers one after the other in one field, as a later protobuf writes them. */
static void add_packed(struct onnx_model *model, struct protobuf row, struct dims *dims) {
    while (row.len > 0 && model->status == 0) {
        const char *at = row.data;
        uint64_t dim;
        if (protobuf_next_varint(&row, &dim) < 0) {
            onnx_fail(model, at, "a truncated dimension");
            return;
        }
        add_dim(model, at, dims, (int64_t)dim);
    }
}

static uint64_t count_elements(struct onnx_model *model, const char *at, const struct dims *dims) {
    uint64_t n = 1;
    bool has_zero = false;
    for (size_t i = 0; i < dims->n; i++) {
        if (dims->at[i] < 0) {
            onnx_fail(model, at, "a tensor with a negative dimension");
            return 0;
        }
        has_zero = has_zero || dims->at[i] == 0;
    }
    for (size_t i = 0; i < dims->n && !has_zero; i++) {
        if (__builtin_mul_overflow(n, (uint64_t)dims->at[i], &n) || n > INT64_MAX) {
            onnx_fail(model, at, "a tensor of more elements than can be counted");
            return 0;
        }
    }
    return has_zero ? 0 : n;
}

static const int64_t *keep_dims(struct onnx_model *model, const struct dims *dims) {
    return onnx_keep(model, dims->at, dims->n * sizeof(dims->at[0]));
}

static void read_tensor_field(struct onnx_model *model, const struct protobuf_field *field,
                              struct dims *dims, struct onnx_tensor *tensor) {
    switch (onnx_key(field)) {
    case ONNX_KEY(TENSOR_DIMS, PROTOBUF_BYTES):
        add_packed(model, field->bytes, dims);
        break;
    case ONNX_KEY(TENSOR_DIMS, PROTOBUF_VARINT):
        add_dim(model, dims->start, dims, (int64_t)field->value);
        break;
    case ONNX_KEY(TENSOR_DATA_TYPE, PROTOBUF_VARINT):
        tensor->data_type = (int64_t)field->value;
        break;
    case ONNX_KEY(TENSOR_FLOAT_DATA, PROTOBUF_BYTES):
        tensor->floats = field->bytes;
        break;
    case ONNX_KEY(TENSOR_INT64_DATA, PROTOBUF_BYTES):
        tensor->int64s = field->bytes;
        break;
    case ONNX_KEY(TENSOR_RAW_DATA, PROTOBUF_BYTES):
        tensor->raw = field->bytes;
        break;
    case ONNX_KEY(TENSOR_DATA_LOCATION, PROTOBUF_VARINT):
        tensor->external = field->value == LOCATION_EXTERNAL;
        model->has_external_data = model->has_external_data || tensor->external;
        break;
    default:
        break;
    }
}

void onnx_tensor_read(struct onnx_model *model, struct protobuf message, struct onnx_tensor *ret,
                      struct protobuf *ret_name) {
    const char *start = message.data;
    struct dims dims = {.start = start};
    struct protobuf_field field;
    *ret = (struct onnx_tensor){0};
    *ret_name = (struct protobuf){.data = start};
    while (onnx_next_field(model, &message, &field)) {
        if (onnx_key(&field) == ONNX_KEY(TENSOR_NAME, PROTOBUF_BYTES)) {
            *ret_name = field.bytes;
        } else {
            read_tensor_field(model, &field, &dims, ret);
        }
    }
    ret->n_elements = count_elements(model, start, &dims);
    ret->dims = keep_dims(model, &dims);
    ret->n_dims = ret->dims != NULL ? dims.n : 0;
}

/* A dimension has a number, or a name that stands for any, or neither. */
static void read_dim(struct onnx_model *model, struct protobuf message, struct dims *dims) {
    const char *at = message.data;
    int64_t dim = -1;
    struct protobuf_field field;
    while (onnx_next_field(model, &message, &field)) {
        if (onnx_key(&field) == ONNX_KEY(DIM_VALUE, PROTOBUF_VARINT) && (int64_t)field.value >= 0) {
            dim = (int64_t)field.value;
        }
    }
    add_dim(model, at, dims, dim);
}

static void read_shape(struct onnx_model *model, struct protobuf message,
                       struct onnx_shape *shape) {
    struct dims dims = {.n = 0};
    struct protobuf_field field;
    while (onnx_next_field(model, &message, &field)) {
        if (onnx_key(&field) == ONNX_KEY(SHAPE_DIM, PROTOBUF_BYTES)) {
            read_dim(model, field.bytes, &dims);
        }
    }
    shape->dims = keep_dims(model, &dims);
    shape->known = shape->dims != NULL;
    shape->n_dims = dims.n;
}

/* TypeProto around TypeProto.Tensor: the shapes of other types are unknown. */
static void read_type(struct onnx_model *model, struct protobuf message, bool inner,
                      struct onnx_shape *shape) {
    struct protobuf_field field;
    while (onnx_next_field(model, &message, &field)) {
        uint32_t key = onnx_key(&field);
        if (!inner && key == ONNX_KEY(TYPE_TENSOR, PROTOBUF_BYTES)) {
            read_type(model, field.bytes, true, shape);
        } else if (inner && key == ONNX_KEY(TENSOR_TYPE_ELEM, PROTOBUF_VARINT)) {
            shape->data_type = (int64_t)field.value;
        } else if (inner && key == ONNX_KEY(TENSOR_TYPE_SHAPE, PROTOBUF_BYTES)) {
            read_shape(model, field.bytes, shape);
        }
    }
}

void onnx_value_info_read(struct onnx_model *model, struct protobuf message,
                          struct onnx_shape *ret_shape, struct protobuf *ret_name) {
    struct protobuf_field field;
    *ret_shape = (struct onnx_shape){0};
    *ret_name = (struct protobuf){.data = message.data};
    while (onnx_next_field(model, &message, &field)) {
        uint32_t key = onnx_key(&field);
        if (key == ONNX_KEY(VALUE_NAME, PROTOBUF_BYTES)) {
            *ret_name = field.bytes;
        } else if (key == ONNX_KEY(VALUE_TYPE, PROTOBUF_BYTES)) {
            read_type(model, field.bytes, false, ret_shape);
        }
    }
}

int onnx_tensor_ints(const struct onnx_tensor *tensor, int64_t *out, size_t max) {
    if (tensor->data_type != TYPE_INT64 || tensor->n_elements > max || tensor->external) {
        return -1;
    }
    size_t n = (size_t)tensor->n_elements;
    if (tensor->raw.len == n * sizeof(*out)) {
        for (size_t i = 0; i < n; i++) {
            memcpy(&out[i], tensor->raw.data + i * sizeof(*out), sizeof(*out));
            out[i] = (int64_t)le64toh((uint64_t)out[i]);
        }
        return (int)n;
    }
    struct protobuf row = tensor->int64s;
    for (size_t i = 0; i < n; i++) {
        uint64_t value;
        if (protobuf_next_varint(&row, &value) < 0) {
            return -1;
        }
        out[i] = (int64_t)value;
    }
    return (int)n;
}

int onnx_tensor_floats(const struct onnx_tensor *tensor, float *out, size_t max) {
    if (tensor->data_type != TYPE_FLOAT || tensor->n_elements > max || tensor->external) {
        return -1;
    }
    size_t n = (size_t)tensor->n_elements;
    const struct protobuf *from = tensor->raw.len > 0 ? &tensor->raw : &tensor->floats;
    if (from->len != n * sizeof(*out)) {
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, from->data + i * sizeof(bits), sizeof(bits));
        bits = le32toh(bits);
        memcpy(&out[i], &bits, sizeof(bits));
    }
    return (int)n;
}

size_t onnx_type_size(int64_t data_type) {
    static const unsigned char sizes[] = {
        [1] = 4,                                 /* FLOAT */
        [2] = 1,                                 /* UINT8 */
        [3] = 1,                                 /* INT8 */
        [4] = 2,                                 /* UINT16 */
        [5] = 2,                                 /* INT16 */
        [6] = 4,                                 /* INT32 */
        [7] = 8,                                 /* INT64 */
        [9] = 1,                                 /* BOOL */
        [10] = 2,                                /* FLOAT16 */
        [11] = 8,                                /* DOUBLE */
        [12] = 4,                                /* UINT32 */
        [13] = 8,                                /* UINT64 */
        [14] = 8,                                /* COMPLEX64 */
        [15] = 16,                               /* COMPLEX128 */
        [16] = 2,                                /* BFLOAT16 */
        [17] = 1,                                /* the four kinds of FLOAT8 */
        [18] = 1,  [19] = 1, [20] = 1, [21] = 1, /* UINT4 */
        [22] = 1,                                /* INT4 */
    };
    return data_type > 0 && data_type < (int64_t)sizeof(sizes) ? sizes[data_type] : 0;
}

/* ---- attributes ---- */

/* Field numbers of onnx.proto. */
enum {
    NODE_ATTRIBUTE = 5,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_INT = 3,
    ATTRIBUTE_TEXT = 4,
    ATTRIBUTE_INTS = 8,
};

static bool has_name(struct protobuf attribute, const char *name) {
    struct protobuf_field field;
    while (protobuf_next(&attribute, &field) > 0) {
        if (onnx_key(&field) == ONNX_KEY(ATTRIBUTE_NAME, PROTOBUF_BYTES)) {
            return onnx_text_is(field.bytes, name);
        }
    }
    return false;
}

/* The message of an attribute; empty where the node has none of that name. */
static struct protobuf find(const struct onnx_node *node, const char *name) {
    struct protobuf message = node->message;
    struct protobuf_field field;
    while (protobuf_next(&message, &field) > 0) {
        if (onnx_key(&field) == ONNX_KEY(NODE_ATTRIBUTE, PROTOBUF_BYTES) &&
            has_name(field.bytes, name)) {
            return field.bytes;
        }
    }
    return (struct protobuf){0};
}

int64_t onnx_attribute_int(const struct onnx_node *node, const char *name, int64_t fallback) {
    struct protobuf attribute = find(node, name);
    struct protobuf_field field;
    int64_t value = fallback;
    while (protobuf_next(&attribute, &field) > 0) {
        if (onnx_key(&field) == ONNX_KEY(ATTRIBUTE_INT, PROTOBUF_VARINT)) {
            value = (int64_t)field.value;
        }
    }
    return value;
}

struct protobuf onnx_attribute_text(const struct onnx_node *node, const char *name) {
    struct protobuf attribute = find(node, name);
    struct protobuf_field field;
    struct protobuf text = {0};
    while (protobuf_next(&attribute, &field) > 0) {
        if (onnx_key(&field) == ONNX_KEY(ATTRIBUTE_TEXT, PROTOBUF_BYTES)) {
            text = field.bytes;
        }
    }
    return text;
}

static bool add_int(int64_t *out, size_t max, size_t *n, uint64_t value) {
    if (*n == max) {
        return false;
    }
    out[(*n)++] = (int64_t)value;
    return true;
}

static bool add_ints(int64_t *out, size_t max, size_t *n, struct protobuf row) {
    uint64_t value;
    while (row.len > 0) {
        if (protobuf_next_varint(&row, &value) < 0 || !add_int(out, max, n, value)) {
            return false;
        }
    }
    return true;
}

int onnx_attribute_ints(const struct onnx_node *node, const char *name, int64_t *out, size_t max) {
    struct protobuf attribute = find(node, name);
    if (attribute.data == NULL) {
        return -1;
    }
    struct protobuf_field field;
    size_t n = 0;
    bool fits = true;
    while (fits && protobuf_next(&attribute, &field) > 0) {
        uint32_t key = onnx_key(&field);
        if (key == ONNX_KEY(ATTRIBUTE_INTS, PROTOBUF_VARINT)) {
            fits = add_int(out, max, &n, field.value);
        } else if (key == ONNX_KEY(ATTRIBUTE_INTS, PROTOBUF_BYTES)) {
            fits = add_ints(out, max, &n, field.bytes);
        }
    }
    return fits ? (int)n : -1;
}
