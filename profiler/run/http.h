#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* One HTTP/1.1 request over a Unix socket, to a container engine. */

/* What was answered, as far as it has come. */
struct run_http_answer {
    int status;
    struct buf body; /* without the chunks it came in */
    bool complete;
};

/* Takes an answer apart; `ended`: the peer has hung up, so nothing more will come. `answer` is
 * emptied first. 0, also where more has to come, or -EBADMSG. */
int run_http_parse(const char *text, size_t len, bool ended, struct run_http_answer *answer);
void run_http_answer_finish(struct run_http_answer *answer);
#define CLEANUP_RUN_HTTP_ANSWER CLEANUP(run_http_answer_finish)

/* A request under way. */
struct run_http {
    int fd; /* -1: none */
    struct buf request;
    size_t n_sent;
    struct buf received;
};

#define RUN_HTTP_NONE ((struct run_http){.fd = -1})

/* Connects and begins to send. `body` is JSON; NULL: none. */
int run_http_begin(struct run_http *http, const char *socket, const char *method, const char *path,
                   const char *body, struct error *err);

/* Does what can be done at once; `answer` tells whether all has come. */
int run_http_step(struct run_http *http, struct run_http_answer *answer, struct error *err);
void run_http_finish(struct run_http *http); /* accepts RUN_HTTP_NONE */

/* The whole, waiting at most `timeout_ms`. */
int run_http_call(const char *socket, const char *method, const char *path, const char *body,
                  int64_t timeout_ms, struct run_http_answer *answer, struct error *err);
