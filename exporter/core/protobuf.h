#pragma once

#include <stddef.h>
#include <stdint.h>

/* Walking over the fields of a protobuf message without copying. */

enum protobuf_wire {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2, /* texts and messages within */
    PROTOBUF_FIXED32 = 5,
};

/* The rest of a message. */
struct protobuf {
    const char *data;
    size_t len;
};

struct protobuf_field {
    uint32_t number;
    enum protobuf_wire wire;
    uint64_t value;        /* of numbers */
    struct protobuf bytes; /* of bytes */
};

/* Takes the next field: 1, 0 at the end, or -EINVAL if it is truncated or an (obsolete) group. */
int protobuf_next(struct protobuf *message, struct protobuf_field *ret_field);

/* Takes a message behind its length, as in a row of them: 0, or -EINVAL if it is truncated. */
int protobuf_next_delimited(struct protobuf *row, struct protobuf *ret_message);

/* Takes a bare number, as in a packed row of them: 0, or -EINVAL if it is truncated. */
int protobuf_next_varint(struct protobuf *row, uint64_t *ret_value);
