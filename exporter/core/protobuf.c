#include "exporter/core/protobuf.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { MAX_NUMBER = (1 << 29) - 1, MAX_VARINT_LEN = 10 };

static bool take_varint(struct protobuf *message, uint64_t *ret_value) {
    uint64_t value = 0;
    for (size_t i = 0; i < message->len && i < MAX_VARINT_LEN; i++) {
        uint8_t byte = (uint8_t)message->data[i];
        value |= (uint64_t)(byte & 0x7f) << (7 * i); /* what does not fit into 64 bits is dropped */
        if ((byte & 0x80) == 0) {
            message->data += i + 1;
            message->len -= i + 1;
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool take_bytes(struct protobuf *message, uint64_t len, struct protobuf *ret_bytes) {
    if (len > message->len) {
        return false;
    }
    *ret_bytes = (struct protobuf){.data = message->data, .len = (size_t)len};
    message->data += len;
    message->len -= (size_t)len;
    return true;
}

static bool take_fixed(struct protobuf *message, size_t len, uint64_t *ret_value) {
    struct protobuf bytes;
    uint64_t value = 0;
    if (!take_bytes(message, len, &bytes)) {
        return false;
    }
    memcpy(&value, bytes.data, len);
    *ret_value = le64toh(value);
    return true;
}

static bool take_value(struct protobuf *message, struct protobuf_field *field) {
    switch (field->wire) {
    case PROTOBUF_VARINT:
        return take_varint(message, &field->value);
    case PROTOBUF_FIXED64:
        return take_fixed(message, 8, &field->value);
    case PROTOBUF_BYTES:
        return protobuf_next_delimited(message, &field->bytes) == 0;
    case PROTOBUF_FIXED32:
        return take_fixed(message, 4, &field->value);
    }
    return false;
}

int protobuf_next(struct protobuf *message, struct protobuf_field *ret_field) {
    uint64_t key;
    if (message->len == 0) {
        return 0;
    }
    if (!take_varint(message, &key) || key >> 3 == 0 || key >> 3 > MAX_NUMBER) {
        return -EINVAL;
    }
    *ret_field = (struct protobuf_field){
        .number = (uint32_t)(key >> 3),
        .wire = (enum protobuf_wire)(key & 7),
    };
    return take_value(message, ret_field) ? 1 : -EINVAL;
}

int protobuf_next_delimited(struct protobuf *row, struct protobuf *ret_message) {
    uint64_t len;
    return take_varint(row, &len) && take_bytes(row, len, ret_message) ? 0 : -EINVAL;
}

int protobuf_next_varint(struct protobuf *row, uint64_t *ret_value) {
    return take_varint(row, ret_value) ? 0 : -EINVAL;
}
