#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gnutls_session_int;
struct http_request;
struct web_config;

/* Who is connected, and who has to go when one more arrives than there is room for: of those worth
 * least the one that has done nothing for longest. Clients that connect and then dawdle can so
 * never keep a scrape out. A quarter of the room is the newcomers': as long as they are fewer,
 * others make way, so that a scrape that has just connected gets to ask. A client whose request we
 * hold back is never sent away: http_request.c bounds those, in all and by address. */

enum http_client_class {
    HTTP_CLIENT_NEW,  /* has not sent a whole request yet */
    HTTP_CLIENT_IDLE, /* has, and is between two */
    HTTP_CLIENT_BUSY, /* is being answered, or sends a further request's body */
    HTTP_CLIENT_HELD, /* waits for us */
};

struct http_client {
    int fd;
    enum http_client_class class;
    bool leaving;
    int64_t due_ns;          /* by then it must have got on with its request; INT64_MAX: no hurry */
    int64_t look_ns;         /* then it is seen whether it has left; INT64_MAX: not needed */
    struct in6_addr address; /* IPv4 as mapped; all zero over a Unix socket */
    bool is_unix;
    bool asked_routes;              /* whether is_gateway is known */
    bool is_gateway;                /* of a route of this machine */
    bool sends_body;                /* is told by 408 that it takes too long */
    struct gnutls_session_int *tls; /* NULL: plain */
    struct web_config *web_config;  /* what the connection was set up with; NULL: plain */
    struct http_request *request;   /* the one under way, owned; NULL: none */
    struct http_client *older, *younger;
};

struct http_gate {
    size_t max_clients;
    size_t max_per_address;    /* 0: no limit */
    int64_t header_timeout_ns; /* for newcomers to send their first request's head */
    size_t n_clients;
    uint64_t n_evicted;
    struct http_client *oldest, *youngest; /* by their arrival or latest answer */
};

/* Lets a connection in, at the expense of another one if need be. NULL when it is itself refused
 * (its address has its share, or memory is out): the caller closes it then. */
struct http_client *http_gate_enter(struct http_gate *gate, int fd);

/* The client on that descriptor, or NULL. */
struct http_client *http_gate_find(const struct http_gate *gate, int fd);

/* The client has got an answer: it is idle, and the last to go among its like. */
void http_gate_answered(struct http_gate *gate, struct http_client *client);

/* Closes the client's connection; libmicrohttpd then reports its end. Not while its request is
 * held. */
void http_gate_evict(struct http_gate *gate, struct http_client *client);

/* The connection is gone; frees the client. */
void http_gate_leave(struct http_gate *gate, struct http_client *client);

/* Sends away who has taken too long to send a request or to take its answer, and who has left
 * without libmicrohttpd noticing. Returns when to look again, or INT64_MAX. */
int64_t http_gate_sweep(struct http_gate *gate, int64_t now_ns);
