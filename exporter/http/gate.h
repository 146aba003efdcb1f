#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gnutls_session_int;
struct http_request;
struct web_config;

/* The connections, and which one to evict for a new one if there are too many: the longest inactive
 * of the lowest class. Idle connections can thus never keep a scrape out. A quarter of the room is
 * reserved for new clients: while they are fewer, others are evicted first, so that a scraper that
 * has just connected can send its request. A client whose request is held is never evicted:
 * request.c limits those, in all and by address. */

enum http_client_class {
    HTTP_CLIENT_NEW,  /* has not sent a whole request yet */
    HTTP_CLIENT_IDLE, /* between two requests */
    HTTP_CLIENT_BUSY, /* reads a response, or sends the body of a further request */
    HTTP_CLIENT_HELD, /* waits for us */
};

struct http_client {
    int fd;
    enum http_client_class class;
    bool leaving;
    int64_t due_ns;          /* deadline for its next step; INT64_MAX: none */
    int64_t look_ns;         /* when to check whether it has left; INT64_MAX: never */
    struct in6_addr address; /* IPv4 as mapped; all zero over a Unix socket */
    bool is_unix;
    bool gateway_known;             /* whether is_gateway is set */
    bool is_gateway;                /* of a route of this machine */
    bool sends_body;                /* gets 408 at its deadline */
    struct gnutls_session_int *tls; /* NULL: plain */
    struct web_config *web_config;  /* at the time it connected; NULL: plain */
    struct http_request *request;   /* owned; NULL: none */
    struct http_client *older, *younger;
};

struct http_gate {
    size_t max_clients;
    size_t max_per_address;    /* 0: no limit */
    int64_t header_timeout_ns; /* for new clients to send the head of a request */
    size_t n_clients;
    uint64_t n_evicted;
    struct http_client *oldest, *youngest; /* by their arrival or latest response */
};

/* Adds a connection, and evicts another one if there are too many. NULL if its address has too
 * many: the caller closes it then. */
struct http_client *http_gate_enter(struct http_gate *gate, int fd);

/* The client on that descriptor, or NULL. */
struct http_client *http_gate_find(const struct http_gate *gate, int fd);

/* The client has got a response: it is idle, and the last of its class to be evicted. */
void http_gate_answered(struct http_gate *gate, struct http_client *client);

/* Closes the client's connection; libmicrohttpd then reports its end. Not while a request is held.
 */
void http_gate_evict(struct http_gate *gate, struct http_client *client);

/* The connection is gone; frees the client. */
void http_gate_leave(struct http_gate *gate, struct http_client *client);

/* Closes connections that exceeded their timeout, and those that the client has closed without
 * libmicrohttpd noticing. Returns when to call again, or INT64_MAX. */
int64_t http_gate_sweep(struct http_gate *gate, int64_t now_ns);
