#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"

/* One HTTP request over a Unix socket. It uses HTTP/1.0, so that the answer is not cut into chunks
 * and ends with the connection. */
struct http_client {
    int fd; /* -1: no request */
    struct buf request;
    size_t n_sent;
    struct buf answer;   /* from the status line on; the body only, once `status` is known */
    int status;          /* 0: not known yet */
    bool ended;          /* the answer is complete */
    int64_t deadline_ns; /* of the monotonic clock */
};

#define HTTP_CLIENT_NONE ((struct http_client){.fd = -1})

/* Closes the connection and frees the answer; leaves HTTP_CLIENT_NONE, which it accepts. */
void http_client_finish(struct http_client *client);
#define CLEANUP_HTTP_CLIENT CLEANUP(http_client_finish)

/* Connects; `body` is JSON or NULL. 0, or the errno of connecting. */
int http_client_begin(struct http_client *client, const char *socket, const char *method,
                      const char *path, const char *body, int64_t deadline_ns);

/* Sends and reads what can be at once. 0, or a negative errno if the request has failed: -ETIMEDOUT
 * past the deadline, -EFBIG for an answer beyond `max_bytes`, -EPROTO for what is not HTTP. */
int http_client_step(struct http_client *client, size_t max_bytes, int64_t now_ns);

/* Sends a request and waits for its answer. 0, or a negative errno as above. */
int http_client_call(struct http_client *client, const char *socket, const char *method,
                     const char *path, const char *body, size_t max_bytes, int64_t timeout_ms);
