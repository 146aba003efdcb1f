#include "placement/onnx/graph.h"

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
