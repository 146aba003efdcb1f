#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/buf.h"

/* One GET request over a Unix socket, never waiting. HTTP/1.0, so that the answer is not cut into
 * chunks and its end is the end of the connection. */
struct container_http {
    int fd; /* -1: no request under way */
    struct buf request;
    size_t n_sent;
    struct buf answer;   /* from the status line on; the head is cut off once it is complete */
    int status;          /* 0: not known yet */
    bool ended;          /* the peer has said all */
    int64_t deadline_ns; /* for answers that have an end */
};

void container_http_init(struct container_http *http);

/* Closes the connection and forgets the answer. */
void container_http_finish(struct container_http *http);

/* Begins a request. 0, or the errno of connecting. */
int container_http_get(struct container_http *http, const char *socket, const char *path,
                       int64_t deadline_ns);

/* Sends and reads what can be at once. 0, or a negative errno where the request has failed: also
 * -ETIMEDOUT past the deadline and -EFBIG for an answer beyond `max_bytes`. */
int container_http_step(struct container_http *http, size_t max_bytes, int64_t now_ns);
