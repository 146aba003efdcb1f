#include "placement/onnx/graph.h"

/* ---- dimensions ---- */

/* Appends a repeated number, which is alone or in a packed row. False: too many, or truncated. */
static bool add_numbers(const struct protobuf_field *field, struct onnx_dims *out) {
    struct protobuf row = field->bytes;
    uint64_t number = field->value;
    bool is_packed = field->wire == PROTOBUF_BYTES;
    for (bool more = !is_packed || row.len > 0; more; more = is_packed && row.len > 0) {
        if (out->n == ONNX_MAX_RANK || (is_packed && protobuf_next_varint(&row, &number) < 0)) {
            return false;
        }
        out->at[out->n++] = (int64_t)number;
    }
    return true;
}

/* What is read of a tensor, or of a value. */
struct reading {
    struct onnx_tensor tensor;
    struct onnx_shape shape;
    struct onnx_dims dims;
    const char *start;
};

static void read_dims(struct onnx_model *model, const struct protobuf_field *field, void *to) {
    struct reading *in = to;
    if (!add_numbers(field, &in->dims)) {
        onnx_fail(model, in->start, "a tensor of more than %d dimensions, or a truncated one",
                  ONNX_MAX_RANK);
    }
}

static uint64_t count_elements(struct onnx_model *model, const char *at,
                               const struct onnx_dims *dims) {
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

static const int64_t *keep_dims(struct onnx_model *model, const struct onnx_dims *dims) {
    return onnx_keep(model, dims->at, dims->n * sizeof(dims->at[0]));
}

/* ---- tensors ---- */

enum { TYPE_FLOAT = 1, TYPE_INT64 = 7, LOCATION_EXTERNAL = 1 };

static const struct onnx_field tensor_fields[] = {
    {1, PROTOBUF_BYTES, .read = read_dims},
    {1, PROTOBUF_VARINT, .read = read_dims},
    {2, PROTOBUF_VARINT, offsetof(struct reading, tensor.data_type)},
    {4, PROTOBUF_BYTES, offsetof(struct reading, tensor.floats)},
    {7, PROTOBUF_BYTES, offsetof(struct reading, tensor.int64s)},
    {8, PROTOBUF_BYTES, offsetof(struct reading, tensor.name)},
    {9, PROTOBUF_BYTES, offsetof(struct reading, tensor.raw)},
    {14, PROTOBUF_VARINT, offsetof(struct reading, tensor.location)},
    {0},
};

void onnx_tensor_read(struct onnx_model *model, struct protobuf message, struct onnx_tensor *ret) {
    struct reading in = {.tensor.name = {.data = message.data}, .start = message.data};
    onnx_read(model, message, tensor_fields, &in);
    *ret = in.tensor;
    ret->n_elements = count_elements(model, in.start, &in.dims);
    ret->dims = keep_dims(model, &in.dims);
    ret->n_dims = ret->dims != NULL ? in.dims.n : 0;
    model->has_external_data |= ret->location == LOCATION_EXTERNAL;
}

bool onnx_tensor_ints(const struct onnx_tensor *tensor, struct onnx_dims *ret) {
    if (tensor->data_type != TYPE_INT64 || tensor->n_elements > ONNX_MAX_RANK ||
        tensor->location == LOCATION_EXTERNAL) {
        return false;
    }
    ret->n = (size_t)tensor->n_elements;
    bool is_raw = tensor->raw.len == ret->n * sizeof(ret->at[0]);
    struct protobuf row = tensor->int64s;
    for (size_t i = 0; i < ret->n; i++) {
        uint64_t value;
        if (is_raw) {
            memcpy(&value, tensor->raw.data + i * sizeof(value), sizeof(value));
            value = le64toh(value);
        } else if (protobuf_next_varint(&row, &value) < 0) {
            return false;
        }
        ret->at[i] = (int64_t)value;
    }
    return true;
}

int onnx_tensor_floats(const struct onnx_tensor *tensor, float *out, size_t max) {
    if (tensor->data_type != TYPE_FLOAT || tensor->n_elements > max ||
        tensor->location == LOCATION_EXTERNAL) {
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

/* The types by their numbers in onnx.proto. */
static const struct {
    const char *name;
    unsigned char size;
} types[] = {
    {"other", 0},       {"float", 4},    {"uint8", 1},  {"int8", 1},   {"uint16", 2},
    {"int16", 2},       {"int32", 4},    {"int64", 8},  {"string", 0}, {"bool", 1},
    {"float16", 2},     {"double", 8},   {"uint32", 4}, {"uint64", 8}, {"complex64", 8},
    {"complex128", 16}, {"bfloat16", 2}, {"other", 1},  {"other", 1},  {"other", 1},
    {"other", 1},       {"other", 1},    {"other", 1},
};

static size_t type_of(int64_t data_type) {
    return data_type > 0 && data_type < (int64_t)ARRAY_LEN(types) ? (size_t)data_type : 0;
}

size_t onnx_type_size(int64_t data_type) {
    return types[type_of(data_type)].size;
}

const char *onnx_type_name(int64_t data_type) {
    return types[type_of(data_type)].name;
}

/* ---- values ---- */

/* A dimension has a number, or a name that stands for any, or neither. */
static void read_dim(struct onnx_model *model, const struct protobuf_field *field, void *to) {
    static const struct onnx_field fields[] = {{1, PROTOBUF_VARINT}, {0}};
    int64_t dim = -1;
    onnx_read(model, field->bytes, fields, &dim);
    const struct protobuf_field number = {.wire = PROTOBUF_VARINT,
                                          .value = (uint64_t)(dim < 0 ? -1 : dim)};
    read_dims(model, &number, to);
}

static const struct onnx_field shape_fields[] = {
    {1, PROTOBUF_BYTES, .read = read_dim},
    {0},
};

static void read_shape(struct onnx_model *model, const struct protobuf_field *field, void *to) {
    struct reading *in = to;
    in->dims.n = 0;
    onnx_read(model, field->bytes, shape_fields, in);
    in->shape.dims = keep_dims(model, &in->dims);
    in->shape.known = in->shape.dims != NULL;
    in->shape.n_dims = in->dims.n;
}

/* The shapes of types that are not tensors are unknown. */
static const struct onnx_field tensor_type_fields[] = {
    {1, PROTOBUF_VARINT, offsetof(struct reading, shape.data_type)},
    {2, PROTOBUF_BYTES, .read = read_shape},
    {0},
};
static const struct onnx_field type_fields[] = {
    {1, PROTOBUF_BYTES, .message = tensor_type_fields},
    {0},
};
static const struct onnx_field value_fields[] = {
    {1, PROTOBUF_BYTES, offsetof(struct reading, tensor.name)},
    {2, PROTOBUF_BYTES, .message = type_fields},
    {0},
};

void onnx_value_info_read(struct onnx_model *model, struct protobuf message,
                          struct onnx_shape *ret_shape, struct protobuf *ret_name) {
    struct reading in = {.tensor.name = {.data = message.data}, .start = message.data};
    onnx_read(model, message, value_fields, &in);
    *ret_shape = in.shape;
    *ret_name = in.tensor.name;
}

/* ---- attributes ---- */

struct attribute {
    struct protobuf name, text;
    int64_t number;
    struct onnx_dims *ints; /* NULL: not wanted */
    bool fits;
};

static void read_ints(struct onnx_model *model, const struct protobuf_field *field, void *to) {
    (void)model;
    struct attribute *in = to;
    in->fits = in->fits && (in->ints == NULL || add_numbers(field, in->ints));
}

static const struct onnx_field attribute_name[] = {
    {1, PROTOBUF_BYTES, offsetof(struct attribute, name)},
    {0},
};
static const struct onnx_field attribute_fields[] = {
    {3, PROTOBUF_VARINT, offsetof(struct attribute, number)},
    {4, PROTOBUF_BYTES, offsetof(struct attribute, text)},
    {8, PROTOBUF_BYTES, .read = read_ints},
    {8, PROTOBUF_VARINT, .read = read_ints},
    {0},
};

/* Reads the first attribute of that name; false if there is none. */
static bool find(const struct onnx_node *node, const char *name, struct attribute *ret) {
    /* Cannot fail: the fields were checked when the node was read. */
    struct onnx_model checked = {.status = 0};
    struct protobuf message = node->message;
    struct protobuf_field field;
    while (protobuf_next(&message, &field) > 0) {
        if (field.number != ONNX_NODE_ATTRIBUTE || field.wire != PROTOBUF_BYTES) {
            continue;
        }
        ret->name.len = 0;
        onnx_read(&checked, field.bytes, attribute_name, ret);
        if (onnx_text_is(ret->name, name)) {
            onnx_read(&checked, field.bytes, attribute_fields, ret);
            return true;
        }
    }
    return false;
}

int64_t onnx_attribute_int(const struct onnx_node *node, const char *name, int64_t fallback) {
    struct attribute attribute = {.number = fallback};
    find(node, name, &attribute);
    return attribute.number;
}

struct protobuf onnx_attribute_text(const struct onnx_node *node, const char *name) {
    struct attribute attribute = {.number = 0};
    find(node, name, &attribute);
    return attribute.text;
}

bool onnx_attribute_ints(const struct onnx_node *node, const char *name, struct onnx_dims *ret) {
    struct attribute attribute = {.ints = ret, .fits = true};
    ret->n = 0;
    return find(node, name, &attribute) && attribute.fits;
}
