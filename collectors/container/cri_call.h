#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/buf.h"

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
