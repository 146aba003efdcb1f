#include "collectors/container/http2_frame.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { LITERAL_NOT_INDEXED = 0x00, MAX_SHORT_TEXT = 126 };

static uint32_t u32_at(const char *text) {
    const uint8_t *bytes = (const uint8_t *)text;
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Length (24 bits), type (8), flags (8), a bit that means nothing, stream (31). */
int http2_frame_read(const char *text, size_t len, struct http2_frame *ret_frame) {
    if (len < HTTP2_HEAD_LEN) {
        return 0;
    }
    size_t content = u32_at(text) >> 8;
    if (content > HTTP2_MAX_LEN) {
        return -EPROTO;
    }
    if (len < HTTP2_HEAD_LEN + content) {
        return 0;
    }
    *ret_frame = (struct http2_frame){
        .type = (uint8_t)text[3],
        .flags = (uint8_t)text[4],
        .stream = u32_at(text + 5) & INT32_MAX,
        .data = text + HTTP2_HEAD_LEN,
        .len = content,
    };
    return (int)(HTTP2_HEAD_LEN + content);
}

int http2_frame_unpad(struct http2_frame *frame) {
    if ((frame->flags & HTTP2_PADDED) == 0) {
        return 0;
    }
    size_t padding = frame->len > 0 ? (size_t)(uint8_t)frame->data[0] + 1 : 1;
    if (padding > frame->len) {
        return -EPROTO;
    }
    frame->data++;
    frame->len -= padding;
    return 0;
}

uint32_t http2_frame_u32(const struct http2_frame *frame, size_t offset) {
    return frame->len >= offset + sizeof(uint32_t) ? u32_at(frame->data + offset) : 0;
}

void http2_u32_write(struct buf *out, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
        buf_add_char(out, (char)(value >> shift));
    }
}

void http2_frame_write(struct buf *out, const struct http2_frame *frame) {
    assert(frame->len <= HTTP2_MAX_LEN);
    http2_u32_write(out, (uint32_t)frame->len << 8 | frame->type);
    buf_add_char(out, (char)frame->flags);
    http2_u32_write(out, frame->stream);
    buf_add(out, frame->data, frame->len);
}

void http2_setting_write(struct buf *out, enum http2_setting setting, uint32_t value) {
    buf_add_char(out, 0);
    buf_add_char(out, (char)setting);
    http2_u32_write(out, value);
}

static void add_text(struct buf *out, const char *text) {
    size_t len = strlen(text);
    assert(len <= MAX_SHORT_TEXT);
    buf_add_char(out, (char)len); /* the highest bit would say that it is packed (Huffman) */
    buf_add(out, text, len);
}

void http2_header_write(struct buf *out, const char *name, const char *value) {
    buf_add_char(out, LITERAL_NOT_INDEXED);
    add_text(out, name);
    add_text(out, value);
}
