#include "collectors/container/cri_call.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "collectors/container/http2_frame.h"
#include "exporter/core/cleanup.h"
#include "exporter/net/unix_socket.h"

/* A window of this size lets every answer that is taken come without being asked to go on. */
#define MAX_ANSWER_BYTES (32U << 20)
#define MAX_RECEIVED_BYTES (2U * CRI_MAX_CALLS * MAX_ANSWER_BYTES)
#define MAX_STEP_BYTES (4U << 20)

enum {
    READ_ROOM = 65536,
    MAX_OUT_BYTES = 65536, /* of answers to pings and the like that nobody takes */
    MESSAGE_HEAD_LEN = 5,  /* a byte that says whether it is packed, and its length */
    FIRST_WINDOW = 65535,
};

void cri_call_init(struct cri_call *call) {
    *call = (struct cri_call){.fd = -1};
}

void cri_call_finish(struct cri_call *call) {
    if (call->fd >= 0) {
        close(call->fd);
    }
    buf_finish(&call->out);
    buf_finish(&call->in);
    for (size_t i = 0; i < CRI_MAX_CALLS; i++) {
        buf_finish(&call->answers[i].text);
    }
    cri_call_init(call);
}

/* Streams that a client opens have odd numbers. */
static uint32_t stream_of(size_t i) {
    return (uint32_t)(2 * i + 1);
}

static struct cri_answer *answer_of(struct cri_call *call, uint32_t stream) {
    return stream % 2 == 1 && stream / 2 < call->n_answers ? &call->answers[stream / 2] : NULL;
}

static void write_frame(struct cri_call *call, enum http2_type type, int flags, uint32_t stream,
                        const struct buf *content) {
    const struct http2_frame frame = {
        .type = (uint8_t)type,
        .flags = (uint8_t)flags,
        .stream = stream,
        .data = buf_str(content),
        .len = content->len,
    };
    http2_frame_write(&call->out, &frame);
    call->out.failed = call->out.failed || content->failed;
}

static void write_greeting(struct cri_call *call) {
    struct buf settings CLEANUP_BUF = {0};
    struct buf window CLEANUP_BUF = {0};
    buf_add_str(&call->out, HTTP2_PREFACE);
    http2_setting_write(&settings, HTTP2_HEADER_TABLE_SIZE, 0);
    http2_setting_write(&settings, HTTP2_ENABLE_PUSH, 0);
    http2_setting_write(&settings, HTTP2_INITIAL_WINDOW_SIZE, MAX_ANSWER_BYTES);
    write_frame(call, HTTP2_SETTINGS, 0, 0, &settings);
    http2_u32_write(&window, CRI_MAX_CALLS * MAX_ANSWER_BYTES - FIRST_WINDOW);
    write_frame(call, HTTP2_WINDOW_UPDATE, 0, 0, &window);
}

static void write_request(struct cri_call *call, uint32_t stream, const char *method) {
    const struct {
        const char *name;
        const char *value;
    } headers[] = {
        {":method", "POST"},         {":scheme", "http"}, {":path", method},
        {":authority", "localhost"}, {"te", "trailers"},  {"content-type", "application/grpc"},
        {"user-agent", "waap"},
    };
    struct buf head CLEANUP_BUF = {0};
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        http2_header_write(&head, headers[i].name, headers[i].value);
    }
    write_frame(call, HTTP2_HEADERS, HTTP2_END_HEADERS, stream, &head);
    struct buf message CLEANUP_BUF = {0};
    buf_add(&message, "\0\0\0\0\0", MESSAGE_HEAD_LEN); /* not packed, no bytes */
    write_frame(call, HTTP2_DATA, HTTP2_END_STREAM, stream, &message);
}

int cri_call_begin(struct cri_call *call, const char *socket, const char *const *methods,
                   size_t n_methods, int64_t deadline_ns) {
    assert(n_methods <= CRI_MAX_CALLS);
    cri_call_finish(call);
    int fd CLEANUP_CLOSE = unix_socket_connect(socket);
    if (fd < 0) {
        return fd;
    }
    write_greeting(call);
    for (size_t i = 0; i < n_methods; i++) {
        write_request(call, stream_of(i), methods[i]);
    }
    if (call->out.failed) {
        cri_call_finish(call);
        return -ENOMEM;
    }
    call->fd = TAKE_FD(fd);
    call->n_answers = n_methods;
    call->deadline_ns = deadline_ns;
    return 0;
}

static int send_rest(struct cri_call *call) {
    int r = unix_socket_send(call->fd, &call->out, &call->n_sent);
    if (call->n_sent == call->out.len) {
        buf_reset(&call->out);
        call->n_sent = 0;
    }
    return r;
}

static int take_data(struct cri_call *call, struct http2_frame *frame) {
    struct cri_answer *answer = answer_of(call, frame->stream);
    int r = http2_frame_unpad(frame);
    if (r < 0 || answer == NULL) {
        return r;
    }
    if (answer->ended || answer->text.len + frame->len > MAX_ANSWER_BYTES) {
        return answer->ended ? -EPROTO : -EFBIG;
    }
    buf_add(&answer->text, frame->data, frame->len);
    return answer->text.failed ? -ENOMEM : 0;
}

/* A peer that goes away says up to which stream it still answers. */
static int take_goaway(const struct cri_call *call, const struct http2_frame *frame) {
    uint32_t last = http2_frame_u32(frame, 0) & INT32_MAX;
    for (size_t i = 0; i < call->n_answers; i++) {
        if (!call->answers[i].ended && stream_of(i) > last) {
            return -EPROTO;
        }
    }
    return 0;
}

static int acknowledge(struct cri_call *call, const struct http2_frame *frame) {
    if ((frame->flags & HTTP2_ACK) != 0) {
        return 0;
    }
    struct buf content CLEANUP_BUF = {0};
    if (frame->type == HTTP2_PING) {
        buf_add(&content, frame->data, frame->len);
    }
    write_frame(call, (enum http2_type)frame->type, HTTP2_ACK, 0, &content);
    return call->out.failed ? -ENOMEM : call->out.len > MAX_OUT_BYTES ? -EPROTO : 0;
}

/* What the headers say is not looked at: a call that failed has no message. */
static int take_frame(struct cri_call *call, struct http2_frame *frame) {
    struct cri_answer *answer = answer_of(call, frame->stream);
    int r = call->greeted || frame->type == HTTP2_SETTINGS ? 0 : -EPROTO;
    call->greeted = true;
    if (r == 0 && frame->type == HTTP2_DATA) {
        r = take_data(call, frame);
    } else if (r == 0 && frame->type == HTTP2_GOAWAY) {
        r = take_goaway(call, frame);
    } else if (r == 0 && (frame->type == HTTP2_PING || frame->type == HTTP2_SETTINGS)) {
        r = acknowledge(call, frame);
    } else if (r == 0 && frame->type == HTTP2_RST_STREAM && answer != NULL && !answer->ended) {
        r = -EPROTO;
    }
    bool may_end = frame->type == HTTP2_DATA || frame->type == HTTP2_HEADERS;
    if (answer != NULL && may_end && (frame->flags & HTTP2_END_STREAM) != 0) {
        answer->ended = true;
    }
    return r;
}

static int take_frames(struct cri_call *call) {
    struct http2_frame frame;
    size_t used = 0;
    int n;
    while ((n = http2_frame_read(call->in.data + used, call->in.len - used, &frame)) > 0) {
        int r = take_frame(call, &frame);
        if (r < 0) {
            return r;
        }
        used += (size_t)n;
    }
    if (used > 0) {
        memmove(call->in.data, call->in.data + used, call->in.len - used);
        buf_truncate(&call->in, call->in.len - used);
    }
    return n;
}

static bool all_ended(const struct cri_call *call) {
    for (size_t i = 0; i < call->n_answers; i++) {
        if (!call->answers[i].ended) {
            return false;
        }
    }
    return true;
}

static int receive(struct cri_call *call) {
    size_t end = call->n_received + MAX_STEP_BYTES;
    while (!all_ended(call) && call->n_received < end) {
        int n = unix_socket_receive(call->fd, READ_ROOM, &call->in);
        if (n <= 0) {
            return n == 0 ? -EPIPE : n == -EAGAIN ? 0 : n;
        }
        call->n_received += (size_t)n;
        int r = call->n_received > MAX_RECEIVED_BYTES ? -EFBIG : take_frames(call);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* One message, not packed and all there. */
static bool is_message(const struct buf *text) {
    return text->len >= MESSAGE_HEAD_LEN && text->data[0] == 0 &&
           http2_frame_u32(&(struct http2_frame){.data = text->data, .len = text->len}, 1) ==
               text->len - MESSAGE_HEAD_LEN;
}

int cri_call_step(struct cri_call *call, int64_t now_ns) {
    int r = send_rest(call);
    r = r == 0 ? receive(call) : r;
    r = r == 0 ? send_rest(call) : r;
    if (r < 0) {
        return r;
    }
    if (!all_ended(call)) {
        return now_ns >= call->deadline_ns ? -ETIMEDOUT : 0;
    }
    for (size_t i = 0; i < call->n_answers; i++) {
        if (!is_message(&call->answers[i].text)) {
            return -EPROTO;
        }
    }
    return 1;
}

const char *cri_call_answer(const struct cri_call *call, size_t i, size_t *ret_len) {
    const struct buf *text = &call->answers[i].text;
    *ret_len = text->len - MESSAGE_HEAD_LEN;
    return text->data + MESSAGE_HEAD_LEN;
}
