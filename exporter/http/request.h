#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/buf.h"
#include "exporter/http/checks.h"
#include "exporter/http/gate.h"
#include "exporter/http/sending.h"
#include "exporter/http/url.h"
#include "exporter/loop/worker.h"

struct http_server;
struct web_config;

enum http_method {
    HTTP_GET = 1 << 0,
    HTTP_HEAD = 1 << 1,
    HTTP_POST = 1 << 2,
    HTTP_PUT = 1 << 3,
    HTTP_DELETE = 1 << 4,
    HTTP_OTHER = 1 << 5,
};

struct http_request;

/* One path and what answers it. A handler either answers (http_reply…) before it returns, or holds
 * the request (http_hold) and answers later, on the loop. */
struct http_route {
    const char *path; /* NULL: the telemetry path of the settings */
    const char *name; /* `handler` label of the self metrics */
    unsigned methods; /* of enum http_method; HEAD comes with GET */
    bool prefix;      /* also all paths below it, "/x/…"; a longer route wins */
    bool health;      /* may be exempt from passwords */
    bool takes_body;  /* the handler looks at it; otherwise it is read and thrown away */
    /* Whether who asks may write; where not it has been answered. Called before the body comes.
     * NULL: everybody may. */
    bool (*may_write)(struct http_request *request);
    /* Told of a body that is not taken, with a negative errno; the request has been answered. NULL:
     * nobody wants to know. */
    void (*refused)(struct http_request *request, int code, const char *why);
    void (*handle)(struct http_request *request);
};

struct http_request {
    void *context; /* of the server */
    struct http_server *server;
    struct MHD_Connection *connection;
    struct http_client *client;
    const struct http_route *route; /* NULL: none, or not known yet */
    enum http_method method;
    char *target; /* as sent */
    struct http_url url;
    struct buf body;
    size_t body_announced; /* its length by the head; 0: not known */
    size_t body_room;      /* that is counted for it */
    int64_t start_ns;
    int64_t due_ns; /* by then the whole body must have come */
    bool begun;     /* its head was looked at */
    bool has_body;
    bool held;
    size_t *held_among; /* the count that it is part of while held */
    /* Ends what a scrape waits for. */
    void (*cancel)(struct http_request *request);
    bool suspended;  /* libmicrohttpd was told to wait, and has not called again since */
    bool head_again; /* it waited before its body came: the next call is about the head, too */
    bool drains;     /* is answered when its body has come, which is thrown away */
    bool must_close; /* the connection cannot be trusted after this answer */
    size_t body_seen;

    unsigned status; /* 0: not answered yet */
    struct MHD_Response *response;
    bool owns_response;
    struct http_sending *sending;     /* the answer being read, where it is counted */
    struct http_sending own_sending;  /* where no other request reads it */
    struct http_request *next_reader; /* of `sending` */

    struct http_check check;
    struct worker_job auth_job;
    struct web_config *auth_config;
    char *authorization;
    bool authorized;
    char *user; /* whose password was right; NULL: none was asked for */

    struct http_request *next_waiting; /* for the same thing, in a list of the handler's */
    void *state;                       /* the handler's, for as long as the request lives */
    void (*free_state)(void *state);
};

/* The value of a header, or NULL. */
const char *http_header(const struct http_request *request, const char *name);

/* Whether libmicrohttpd has `n` bytes left beside the request's head, whatever else it has read. */
bool http_has_room(const struct http_request *request, size_t n);

/* Answers with a response object, whose reference the request takes over. */
void http_reply(struct http_request *request, unsigned status, struct MHD_Response *response);

/* The same with a response that several requests share and that somebody else destroys, not before
 * the request is over. http_add_headers must have been called for it. */
void http_reply_shared(struct http_request *request, unsigned status,
                       struct MHD_Response *response);

/* Adds the headers that the web configuration wants on every answer. */
void http_add_headers(const struct http_server *server, struct MHD_Response *response);

/* Answers with a line of text, printf-like; a newline is added. Below /api/v1/, where all answers
 * are JSON, an error is one too. */
void http_reply_text(struct http_request *request, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Answers with the content of `body`, which is taken over and emptied. */
void http_reply_buf(struct http_request *request, unsigned status, const char *content_type,
                    struct buf *body);

/* Keeps the connection waiting until somebody answers. False when as many requests are held as may
 * be, in all or of this peer: it has been answered with 503 then. */
bool http_hold(struct http_request *request);

/* The same for a scrape, which shares its work with others. It may be cancelled and answered with
 * 503 later, in favour of a peer that has fewer of them held. */
bool http_hold_scrape(struct http_request *request, void (*cancel)(struct http_request *request));

/* The same without a limit; while held it is part of `*among`. */
void http_hold_among(struct http_request *request, size_t *among);

/* The same for the body of a push that is being taken. False when there are too many of them. */
bool http_hold_upload(struct http_request *request);

/* Lets a held request go on: libmicrohttpd calls http_dispatch again. */
void http_release(struct http_request *request);
