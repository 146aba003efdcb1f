#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exporter/http/gate.h"

/* Responses being sent. A response stays in memory until its last reader has read it or is
 * disconnected, so all responses together have a limit, web.max-sending-size. A response that
 * exceeds it is sent nevertheless; older responses are cut off instead, first those whose readers
 * have the address of the new one's reader. Responses up to HTTP_SENDING_SMALL are not counted. */

enum { HTTP_SENDING_SMALL = 64 << 10 };

struct http_request;

/* One response; it counts once, however many requests read it. Embedded in its owner. */
struct http_sending {
    size_t len;
    struct http_request *readers; /* NULL: not in the list */
    struct http_sending *older, *younger;
};

/* All of a server. */
struct http_sendings {
    size_t max_bytes;
    size_t n_bytes;
    uint64_t n_cut; /* readers */
    struct http_sending *oldest, *youngest;
};

/* The request begins to read `sending`, which must stay until http_sending_end; its `len` is set.
 * Closes connections that read older responses if the limit is exceeded. */
void http_sending_begin(struct http_request *request, struct http_sending *sending);

/* The request does not read it any more; may be called again. */
void http_sending_end(struct http_request *request);
