#include "profiler/run/http.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exporter/core/clock.h"
#include "exporter/net/unix_socket.h"

enum { MAX_ANSWER = 64 << 20, READ_BYTES = 64 << 10 };

void run_http_answer_finish(struct run_http_answer *answer) {
    buf_finish(&answer->body);
    *answer = (struct run_http_answer){0};
}

/* ---- reading an answer ---- */

/* The value of a header among the lines of the head; NULL: it is not there. */
static const char *find_header(const char *head, const char *head_end, const char *name,
                               size_t *ret_len) {
    size_t name_len = strlen(name);
    while (head < head_end) {
        const char *end = memmem(head, (size_t)(head_end - head), "\r\n", 2);
        end = end != NULL ? end : head_end;
        size_t len = (size_t)(end - head);
        if (len > name_len && head[name_len] == ':' && strncasecmp(head, name, name_len) == 0) {
            const char *value = head + name_len + 1;
            while (value < end && *value == ' ') {
                value++;
            }
            *ret_len = (size_t)(end - value);
            return value;
        }
        head = end + 2;
    }
    return NULL;
}

/* Digits at `text`, at most `len` bytes of them, in that base. -1: none, or too many. */
static int64_t read_size(const char *text, size_t len, int base) {
    char digits[20];
    size_t n = 0;
    while (n < len && n < sizeof(digits) - 1 && strchr("0123456789abcdefABCDEF", text[n]) != NULL) {
        digits[n] = text[n];
        n++;
    }
    digits[n] = '\0';
    char *end;
    long long size = strtoll(digits, &end, base);
    return n == 0 || n == sizeof(digits) - 1 || *end != '\0' || size < 0 ? -1 : size;
}

/* "5\r\nhello\r\n0\r\n\r\n"; a chunk whose end has not come is taken as far as it is there. */
static int take_chunks(const char *at, const char *end, struct run_http_answer *answer) {
    for (;;) {
        const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (line_end == NULL) {
            return 0;
        }
        int64_t size = read_size(at, (size_t)(line_end - at), 16);
        if (size < 0 || size > MAX_ANSWER) {
            return -EBADMSG;
        }
        at = line_end + 2;
        if (size == 0) {
            answer->complete = true; /* trailers are of no interest */
            return 0;
        }
        size_t there = (size_t)(end - at) < (size_t)size ? (size_t)(end - at) : (size_t)size;
        buf_add(&answer->body, at, there);
        if ((size_t)(end - at) < (size_t)size + 2) {
            return 0;
        }
        at += size + 2;
    }
}

static int take_body(const char *head, const char *body, const char *end, bool ended,
                     struct run_http_answer *answer) {
    size_t len;
    const char *coding = find_header(head, body, "Transfer-Encoding", &len);
    if (coding != NULL && len == 7 && strncasecmp(coding, "chunked", len) == 0) {
        return take_chunks(body, end, answer);
    }
    const char *length = find_header(head, body, "Content-Length", &len);
    int64_t size = length != NULL ? read_size(length, len, 10) : -1;
    if (length != NULL && size < 0) {
        return -EBADMSG;
    }
    size_t there = (size_t)(end - body);
    bool empty = answer->status == 204 || answer->status == 304;
    size_t taken = empty ? 0 : size >= 0 && (size_t)size < there ? (size_t)size : there;
    buf_add(&answer->body, body, taken);
    answer->complete = empty || (size >= 0 ? there >= (size_t)size : ended);
    return 0;
}

/* "HTTP/1.1 201 Created". */
static int read_status(const char *text, size_t len) {
    if (len < 12 || strncmp(text, "HTTP/1.", 7) != 0 || text[8] != ' ') {
        return -EBADMSG;
    }
    int64_t status = read_size(text + 9, 3, 10);
    return status >= 100 && status <= 599 ? (int)status : -EBADMSG;
}

int run_http_parse(const char *text, size_t len, bool ended, struct run_http_answer *answer) {
    buf_reset(&answer->body);
    answer->complete = false;
    answer->status = 0;
    const char *head_end = len > 0 ? memmem(text, len, "\r\n\r\n", 4) : NULL;
    if (head_end == NULL) {
        return ended ? -EBADMSG : 0;
    }
    int status = read_status(text, (size_t)(head_end - text));
    if (status < 0) {
        return status;
    }
    answer->status = status;
    int r = take_body(text, head_end + 4, text + len, ended, answer);
    if (r == 0 && ended && !answer->complete) {
        r = -EBADMSG;
    }
    return r;
}

/* ---- asking ---- */

int run_http_begin(struct run_http *http, const char *socket, const char *method, const char *path,
                   const char *body, struct error *err) {
    int fd = unix_socket_connect(socket);
    if (fd < 0) {
        return error_set(err, fd, "connect to %s: %s", socket, strerror(-fd));
    }
    *http = (struct run_http){.fd = fd};
    buf_printf(&http->request, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", method,
               path);
    if (body != NULL) {
        buf_add_str(&http->request, "Content-Type: application/json\r\n");
    }
    buf_printf(&http->request, "Content-Length: %zu\r\n\r\n%s", body != NULL ? strlen(body) : 0,
               body != NULL ? body : "");
    if (http->request.failed) {
        run_http_finish(http);
        return error_set(err, -ENOMEM, "out of memory");
    }
    return 0;
}

int run_http_step(struct run_http *http, struct run_http_answer *answer, struct error *err) {
    int r = unix_socket_send(http->fd, &http->request, &http->n_sent);
    if (r < 0) {
        return error_set(err, r, "ask the container engine: %s", strerror(-r));
    }
    do {
        r = unix_socket_receive(http->fd, READ_BYTES, &http->received);
    } while (r > 0 && http->received.len < MAX_ANSWER);
    if (r > 0) {
        return error_set(err, -EFBIG, "the container engine says too much");
    }
    if (r < 0 && r != -EAGAIN) {
        return error_set(err, r, "hear the container engine: %s", strerror(-r));
    }
    r = run_http_parse(buf_str(&http->received), http->received.len, r == 0, answer);
    return r < 0 ? error_set(err, r, "the container engine does not speak HTTP") : 0;
}

void run_http_finish(struct run_http *http) {
    cleanup_close(&http->fd);
    buf_finish(&http->request);
    buf_finish(&http->received);
    *http = RUN_HTTP_NONE;
}

static int await(struct run_http *http, int64_t until_ns, struct run_http_answer *answer,
                 struct error *err) {
    for (;;) {
        int r = run_http_step(http, answer, err);
        if (r < 0 || answer->complete) {
            return r;
        }
        int64_t left_ms = (until_ns - clock_monotonic_ns()) / CLOCK_NS_PER_MS;
        if (left_ms <= 0) {
            return error_set(err, -ETIMEDOUT, "the container engine does not answer");
        }
        bool sending = http->n_sent < http->request.len;
        struct pollfd fd = {.fd = http->fd, .events = (short)(sending ? POLLIN | POLLOUT : POLLIN)};
        poll(&fd, 1, left_ms < 1000 ? (int)left_ms : 1000);
    }
}

int run_http_call(const char *socket, const char *method, const char *path, const char *body,
                  int64_t timeout_ms, struct run_http_answer *answer, struct error *err) {
    struct run_http http = RUN_HTTP_NONE;
    int r = run_http_begin(&http, socket, method, path, body, err);
    if (r == 0) {
        r = await(&http, clock_monotonic_ns() + timeout_ms * CLOCK_NS_PER_MS, answer, err);
        run_http_finish(&http);
    }
    return r;
}
