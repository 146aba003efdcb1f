#pragma once

#include <string.h>

#include "exporter/core/buf.h"

/* Writing the fields of an ONNX file by hand, wrong ones too. */

static inline void onnx_put_varint(struct buf *out, uint64_t value) {
    for (; value > 0x7f; value >>= 7) {
        buf_add_char(out, (char)(value | 0x80));
    }
    buf_add_char(out, (char)value);
}

static inline void onnx_put_number(struct buf *out, unsigned field, uint64_t value) {
    onnx_put_varint(out, field << 3);
    onnx_put_varint(out, value);
}

static inline void onnx_put_bytes(struct buf *out, unsigned field, const void *data, size_t len) {
    onnx_put_varint(out, field << 3 | 2);
    onnx_put_varint(out, len);
    buf_add(out, data, len);
}

static inline void onnx_put_text(struct buf *out, unsigned field, const char *text) {
    onnx_put_bytes(out, field, text, strlen(text));
}

/* Puts what is in `part` into one field, and empties it. */
static inline void onnx_put_part(struct buf *out, unsigned field, struct buf *part) {
    onnx_put_bytes(out, field, buf_str(part), part->len);
    buf_reset(part);
}

/* A node of two inputs; "" leaves one out. */
static inline void onnx_put_node(struct buf *graph, const char *op_type, const char *a,
                                 const char *b, const char *output) {
    struct buf node CLEANUP_BUF = {0};
    onnx_put_text(&node, 1, a);
    if (b[0] != '\0') {
        onnx_put_text(&node, 1, b);
    }
    onnx_put_text(&node, 2, output);
    onnx_put_text(&node, 4, op_type);
    onnx_put_part(graph, 1, &node);
}

/* Weights of a matrix's form; `packed` as later versions of protobuf write them. */
static inline void onnx_put_weights(struct buf *graph, const char *name, uint64_t rows,
                                    uint64_t columns, bool packed) {
    struct buf tensor CLEANUP_BUF = {0}, dims CLEANUP_BUF = {0};
    if (packed) {
        onnx_put_varint(&dims, rows);
        onnx_put_varint(&dims, columns);
        onnx_put_part(&tensor, 1, &dims);
    } else {
        onnx_put_number(&tensor, 1, rows);
        onnx_put_number(&tensor, 1, columns);
    }
    onnx_put_number(&tensor, 2, 1);
    onnx_put_text(&tensor, 8, name);
    onnx_put_part(graph, 5, &tensor);
}
