#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exporter/core/buf.h"

/* The frames of HTTP/2 (RFC 9113), as far as one who only asks needs them. */

#define HTTP2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

enum http2_type {
    HTTP2_DATA = 0,
    HTTP2_HEADERS = 1,
    HTTP2_RST_STREAM = 3,
    HTTP2_SETTINGS = 4,
    HTTP2_PING = 6,
    HTTP2_GOAWAY = 7,
    HTTP2_WINDOW_UPDATE = 8,
};

enum http2_flag {
    HTTP2_ACK = 0x1,        /* of settings and pings */
    HTTP2_END_STREAM = 0x1, /* of data and headers */
    HTTP2_END_HEADERS = 0x4,
    HTTP2_PADDED = 0x8,
};

enum http2_setting {
    HTTP2_HEADER_TABLE_SIZE = 1,
    HTTP2_ENABLE_PUSH = 2,
    HTTP2_INITIAL_WINDOW_SIZE = 4,
};

enum {
    HTTP2_HEAD_LEN = 9,
    HTTP2_MAX_LEN = 16384, /* of what a frame holds, unless one has asked for more */
};

struct http2_frame {
    uint8_t type; /* there may be others than in enum http2_type */
    uint8_t flags;
    uint32_t stream;
    const char *data; /* into what was read */
    size_t len;
};

/* Takes the frame at the front of what was received. How many bytes it is long with its head, or 0
 * while it is not all there, or -EPROTO where it is longer than allowed. */
int http2_frame_read(const char *text, size_t len, struct http2_frame *ret_frame);

/* Cuts off what only fills a DATA frame up. 0 or -EPROTO. */
int http2_frame_unpad(struct http2_frame *frame);

/* The 32 bits at `offset` of the frame's content, as in GOAWAY; 0 where it is too short. */
uint32_t http2_frame_u32(const struct http2_frame *frame, size_t offset);

/* Appends a frame. `frame->len` must be at most HTTP2_MAX_LEN. */
void http2_frame_write(struct buf *out, const struct http2_frame *frame);

/* Appends one setting to the content of a SETTINGS frame. */
void http2_setting_write(struct buf *out, enum http2_setting setting, uint32_t value);

/* Appends a number of 32 bits, as in WINDOW_UPDATE. */
void http2_u32_write(struct buf *out, uint32_t value);

/* Appends a header to the content of a HEADERS frame: spelled out, which needs no table on either
 * side. Name and value must be shorter than 127 bytes. */
void http2_header_write(struct buf *out, const char *name, const char *value);
