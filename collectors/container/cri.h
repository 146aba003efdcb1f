#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/container/info.h"
#include "exporter/core/buf.h"

/* Frames of HTTP/2 (RFC 9113), as far as a client needs them. */

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
    HTTP2_MAX_LEN = 16384, /* of a frame's content, by default */
};

struct http2_frame {
    uint8_t type; /* may be another than those of enum http2_type */
    uint8_t flags;
    uint32_t stream;
    const char *data; /* points into the received text */
    size_t len;
};

/* Reads the frame at the beginning of the received text. Its length with the head, 0 if it is not
 * complete, or -EPROTO if it is too long. */
int http2_frame_read(const char *text, size_t len, struct http2_frame *ret_frame);

/* Removes the padding of a DATA frame. 0 or -EPROTO. */
int http2_frame_unpad(struct http2_frame *frame);

/* The 32 bits at `offset` of the frame's content, as in GOAWAY; 0 if it is too short. */
uint32_t http2_frame_u32(const struct http2_frame *frame, size_t offset);

/* Appends a frame. `frame->len` must be at most HTTP2_MAX_LEN. */
void http2_frame_write(struct buf *out, const struct http2_frame *frame);

/* Appends one setting to the content of a SETTINGS frame. */
void http2_setting_write(struct buf *out, enum http2_setting setting, uint32_t value);

/* Appends a number of 32 bits, as in WINDOW_UPDATE. */
void http2_u32_write(struct buf *out, uint32_t value);

/* Appends a header to the content of a HEADERS frame, as a literal, so that neither side needs a
 * table. Name and value must be shorter than 127 bytes. */
void http2_header_write(struct buf *out, const char *name, const char *value);

/* Pure readers of CRI's answers (protobuf). The field numbers are the same in v1 and v1alpha2. */

/* Appends the pods of ListPodSandbox's answer that have not ended. 0, or -EINVAL if
 * the message is malformed. */
int cri_message_pods(const char *data, size_t len, container_label_patterns wanted,
                     struct container_infos *infos);

/* The same for ListContainers. */
int cri_message_containers(const char *data, size_t len, container_label_patterns wanted,
                           struct container_infos *infos);

/* Calls of a gRPC service on a Unix socket, in parallel on one connection, each with an empty
 * request and one answer. No call ever waits. */

enum { CRI_MAX_CALLS = 2 };

struct cri_call {
    int fd; /* -1: no call */
    struct buf out;
    size_t n_sent;
    struct buf in;       /* received, but not a complete frame yet */
    size_t n_received;   /* in all */
    bool greeted;        /* the peer has sent its SETTINGS */
    int64_t deadline_ns; /* for all of it */
    size_t n_answers;    /* expected */
    struct cri_answer {
        struct buf text; /* 5 bytes before the message */
        bool ended;
    } answers[CRI_MAX_CALLS];
};

void cri_call_init(struct cri_call *call);

/* Closes the connection and forgets the answers. */
void cri_call_finish(struct cri_call *call);

/* Begins calls of `methods` ("/service/Method"), at most CRI_MAX_CALLS. 0, or the errno of
 * connecting. */
int cri_call_begin(struct cri_call *call, const char *socket, const char *const *methods,
                   size_t n_methods, int64_t deadline_ns);

/* Sends and reads what can be at once. 1 if all answers are complete, 0 if not yet, or a negative
 * errno: -EPROTO if the peer does not speak HTTP/2 or rejects a call, -EFBIG for an answer beyond
 * 32 MiB, -ETIMEDOUT, -EPIPE if it closes the connection. */
int cri_call_step(struct cri_call *call, int64_t now_ns);

/* The answer of call `i`, after the step has returned 1. */
const char *cri_call_answer(const struct cri_call *call, size_t i, size_t *ret_len);

/* Lists the pods of a runtime and their containers over CRI, the only source for the labels of
 * pods. No call ever waits. */
struct cri_client;

/* Uses the first of `sockets` below `rootfs` that answers; they need not exist yet. */
struct cri_client *cri_client_create(const char *rootfs, const char *const *sockets,
                                     size_t n_sockets, container_label_patterns wanted);
void cri_client_destroy(struct cri_client *client); /* accepts NULL */

/* Sends and reads what can be at once. */
void cri_client_step(struct cri_client *client, int64_t now_ns);

/* The container or sandbox, with the labels of its pod after its own, or NULL; valid until the next
 * step. */
const struct container_info *cri_client_find(const struct cri_client *client, const char *id);

/* Requests the lists again: a container is missing in them. */
void cri_client_ask(struct cri_client *client);

/* Changes with every answer. */
unsigned cri_client_generation(const struct cri_client *client);
