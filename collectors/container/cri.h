#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/container/info.h"
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

/* Pure readers of what runtimes answer to Kubernetes (CRI, protobuf). The numbers of the fields are
 * the same in the versions v1 and v1alpha2. */

/* A pod's sandbox, or a container. */
struct cri_item {
    struct container_info info;
    char *sandbox_id; /* of containers */
};

/* Zeroed: empty. */
struct cri_items {
    struct cri_item *rows;
    size_t n_rows, cap_rows;
};

void cri_items_finish(struct cri_items *items);
#define CLEANUP_CRI_ITEMS CLEANUP(cri_items_finish)

/* Appends what ListPodSandbox answers, without the pods that have ended: 10,000 at most. 0, or
 * -EINVAL if it is no such message. */
int cri_message_pods(const char *data, size_t len, container_label_patterns wanted,
                     struct cri_items *items);

/* The same for what ListContainers answers. */
int cri_message_containers(const char *data, size_t len, container_label_patterns wanted,
                           struct cri_items *items);

/* Calls of a gRPC service on a Unix socket, all at once on one connection, each with an empty
 * request and one answer. Nothing here ever waits. */

enum { CRI_MAX_CALLS = 2 };

struct cri_call {
    int fd; /* -1: nothing under way */
    struct buf out;
    size_t n_sent;
    struct buf in;       /* received but not yet a whole frame */
    size_t n_received;   /* in all */
    bool greeted;        /* the peer has shown that it speaks HTTP/2 */
    int64_t deadline_ns; /* for all of it */
    size_t n_answers;    /* how many are asked for */
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

/* Sends and reads what can be at once. 1 when all answers are there, 0 while they are not, or why
 * they will not be: -EPROTO where the peer speaks otherwise or refuses, -EFBIG for an answer beyond
 * 32 MiB, -ETIMEDOUT, -EPIPE where it hangs up. */
int cri_call_step(struct cri_call *call, int64_t now_ns);

/* The message that answers call `i`, once the step has said 1. */
const char *cri_call_answer(const struct cri_call *call, size_t i, size_t *ret_len);

/* Asks a runtime what Kubernetes asks it (CRI): which pods there are and which containers are
 * theirs. Only this tells the labels of pods. Nothing here ever waits. */
struct cri_client;

/* Talks to the first of `sockets` that answers; they need not exist yet. */
struct cri_client *cri_client_create(char *const *sockets, size_t n_sockets,
                                     container_label_patterns wanted);
void cri_client_destroy(struct cri_client *client); /* accepts NULL */

/* Goes on with whatever is under way. */
void cri_client_step(struct cri_client *client, int64_t now_ns);

/* What was told about the container or sandbox, with the labels of its pod behind its own; or NULL.
 * Good until the next step. */
const struct container_info *cri_client_find(const struct cri_client *client, const char *id);

/* Has the lists asked for: there is a container that they do not have. */
void cri_client_ask(struct cri_client *client);

/* Changes whenever something was told. */
unsigned cri_client_generation(const struct cri_client *client);
