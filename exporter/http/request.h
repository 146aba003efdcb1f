#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/buf.h"
#include "exporter/http/gate.h"
#include "exporter/http/sending.h"
#include "exporter/http/url.h"
#include "exporter/http/users.h"
#include "exporter/http/web_config.h"
#include "exporter/loop/worker.h"

struct http_server;

enum http_method {
    HTTP_GET = 1 << 0,
    HTTP_HEAD = 1 << 1,
    HTTP_POST = 1 << 2,
    HTTP_PUT = 1 << 3,
    HTTP_DELETE = 1 << 4,
    HTTP_OTHER = 1 << 5,
};

struct http_request;

/* A path and its handler, which either replies (http_reply…) before it returns, or holds the
 * request (http_hold…) and replies later, on the loop. */
struct http_route {
    const char *path; /* NULL: the telemetry path of the settings */
    const char *name; /* `handler` label of the self metrics */
    unsigned methods; /* of enum http_method; HEAD comes with GET */
    bool prefix;      /* also all paths below it, "/x/…"; the longest route wins */
    bool health;      /* may be exempt from passwords */
    bool takes_body;  /* the handler reads the body; otherwise it is discarded */
    /* Whether the client may use other methods than GET; if not, it has replied. Called before a
     * body that the handler reads is received. NULL: every client may. */
    bool (*may_write)(struct http_request *request);
    /* Called with a negative errno after a body was rejected; optional. */
    void (*refused)(struct http_request *request, int code, const char *why);
    void (*handle)(struct http_request *request);
};

/* The life of a request. libmicrohttpd calls http_request_step when the head is complete, for each
 * piece of the body, when the body is complete, and again after each wait. */
enum http_request_state {
    HTTP_REQUEST_STARTED,  /* has a request line; its head is examined next */
    HTTP_REQUEST_PASSWORD, /* waits until its password is checked; its head is examined next */
    HTTP_REQUEST_BODY, /* its body is being received; if it has a reply, the body is discarded */
    HTTP_REQUEST_COMPLETE, /* is received; the handler replies, unless there is a reply already */
    HTTP_REQUEST_REJECTED, /* has a reply; its body is not read, and the connection closes */
    HTTP_REQUEST_BROKEN,   /* the same; what follows on the connection cannot be trusted */
};

struct http_request {
    void *context; /* of the server */
    struct http_server *server;
    struct MHD_Connection *connection;
    struct http_client *client;
    enum http_request_state state;
    const struct http_route *route; /* NULL: none, or not known yet */
    enum http_method method;
    char *target; /* as sent */
    struct http_url url;
    bool has_body;
    struct buf body;
    size_t body_announced; /* by Content-Length; 0: unknown */
    size_t body_room;      /* counted for it in the server's bodies_room */
    size_t body_seen;
    int64_t start_ns;
    int64_t due_ns;     /* deadline for the whole body */
    size_t *held_among; /* the counter of requests that includes it; NULL: not held */
    /* Drops a held scrape from its round. */
    void (*cancel)(struct http_request *request);

    unsigned status; /* 0: no reply yet */
    struct MHD_Response *response;
    bool owns_response;
    struct http_sending *sending;     /* the reply being sent, if it is counted */
    struct http_sending own_sending;  /* if no other request reads it */
    struct http_request *next_reader; /* of `sending` */

    struct http_check check;
    struct worker_job auth_job;
    struct web_config *auth_config;
    char *authorization;
    bool authorized;
    char *user; /* NULL: no password was required */

    struct http_request *next_waiting; /* for the same thing, in a list of the handler */
    void *handler_state;               /* lives as long as the request */
    void (*free_state)(void *state);
};

/* The value of a header, or NULL. */
const char *http_header(const struct http_request *request, const char *name);

/* Whether libmicrohttpd has `n` bytes left beside the request's head. */
bool http_has_room(const struct http_request *request, size_t n);

/* Replies with a response object; the request takes over the reference. */
void http_reply(struct http_request *request, unsigned status, struct MHD_Response *response);

/* The same with a response that several requests share. Its owner has called http_add_headers, and
 * destroys it after the request has ended. */
void http_reply_shared(struct http_request *request, unsigned status,
                       struct MHD_Response *response);

/* Adds the headers that the web configuration sets on every response. */
void http_add_headers(const struct http_server *server, struct MHD_Response *response);

/* Adds a header to the reply that the request has. */
void http_add_header(struct http_request *request, const char *name, const char *value);

/* Replies with a line of text, printf-like; a newline is added. Below /api/v1/ an error is JSON. */
void http_reply_text(struct http_request *request, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Replies with the content of `body`, which is taken over and emptied. */
void http_reply_buf(struct http_request *request, unsigned status, const char *content_type,
                    struct buf *body);

/* Replies of /api/v1: {"status":"success","data":…} with the JSON in `data`, which is emptied, and
 * {"status":"error","error":…}. */
void http_json_reply(struct http_request *request, struct buf *data);
void http_json_fail(struct http_request *request, unsigned status, const char *text);

/* The HTTP status for a negative errno. */
unsigned http_json_status(int code);

/* Keeps the connection waiting until the handler replies. False if too many requests are held, in
 * all or of this peer: the reply is 503 then. */
bool http_hold(struct http_request *request);

/* The same for a request that waits for minutes: those take no place of others. */
bool http_may_hold_poll(const struct http_request *request);
bool http_hold_poll(struct http_request *request);

/* The same for a scrape. It may be cancelled and get 503 later, in favour of a peer that has fewer
 * scrapes waiting. */
bool http_hold_scrape(struct http_request *request, void (*cancel)(struct http_request *request));

/* The same for a push that is being applied. False without a reply if there are too many. */
bool http_hold_upload(struct http_request *request);

/* ---- for server.c and tests ---- */

/* Lets a held request go on: libmicrohttpd calls http_request_step again. */
void http_request_release(struct http_request *request);

/* Callbacks of libmicrohttpd; the context is the struct http_server. A request line has come:
 * creates the client's request. */
void *http_request_begin(void *context, const char *target, struct MHD_Connection *connection);

/* Advances a request: see enum http_request_state. */
enum MHD_Result http_request_step(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request_slot);

/* The reply is sent, or the connection broke. */
void http_request_completed(void *context, struct MHD_Connection *connection, void **request_slot,
                            enum MHD_RequestTerminationCode code);

/* Ends and frees the client's request, if there is one. libmicrohttpd does not report the end of
 * every request (0.9.75 and 1.0.1: not of one with more parameters or cookies than its pool holds),
 * so a request also ends when the next one begins and when its connection closes. */
void http_request_end(struct http_client *client);

/* Bodies that are received or wait for their reply have one limit together. Small bodies are not
 * counted, so that they get through while large ones are held.
 *
 * Sets the length that the head announces (0: none). Room is counted as bytes arrive, so an upload
 * that sends nothing takes none. -EBUSY if there is too little room now. */
int http_body_announce(struct http_request *request, size_t len, struct error *err);

/* Adds a piece. -EBUSY as above. */
int http_body_add(struct http_request *request, const char *data, size_t size, struct error *err);

/* Frees the body and its room. */
void http_body_drop(struct http_request *request);

/* A token bucket, kept as the moment at which the requests so far would have come, one per
 * interval; 0 is a full bucket. Whether one more request may come at `now_ns`; if so it counts. */
bool http_rate_allow(int64_t *due_ns, struct web_config_rate_limit limit, int64_t now_ns);
