#pragma once

#include "exporter/http/rate.h"
#include "exporter/http/sending.h"
#include "exporter/http/server.h"
#include "exporter/net/listen.h"

/* One libmicrohttpd daemon on our loop. */
struct http_port {
    struct MHD_Daemon *mhd; /* NULL: not needed yet */
    struct loop_source source;
    struct loop_pump pump;
};

/* Shared by http_server.c (connections) and http_dispatch.c (requests). */
struct http_server {
    void *context; /* of the handlers */
    struct loop *loop;
    const struct http_route *routes;
    size_t n_routes;
    struct config *config;
    struct web_config *web_config; /* for new connections and requests; NULL: plain and open */
    struct http_listeners *listeners;
    struct http_port plain;
    struct http_port secure; /* TLS; which of the two takes a connection, web_config decides */
    struct http_gate gate;
    struct http_stats *stats;
    struct worker *auth_worker;
    struct loop_timer sweep;
    unsigned idle_timeout_s;
    size_t max_body;
    size_t max_bodies; /* of all together, small ones not counted */
    size_t bodies_room;
    struct http_sendings sendings;
    size_t pool_size; /* what libmicrohttpd has for a connection's head and answer, at least */
    size_t max_scrapes;
    size_t n_scrapes;
    size_t max_tasks; /* other requests that wait */
    size_t n_tasks;
    size_t max_uploads;
    size_t n_uploads;
    size_t n_checks; /* of passwords, waiting or under way */
    struct http_checks checks;
    bool is_checking;
    struct http_rate rate;
    bool is_closing; /* takes no work that waits */
    bool is_shut;    /* what the handlers look at may be gone */
    bool health_is_open;
};

/* The client has sent something and may have left with it. */
void http_server_client_sent(struct http_server *server, struct http_client *client);

/* The client has to send a request's head from here on, within the header timeout. */
void http_server_client_reads(struct http_server *server, struct http_client *client);

/* The client has sent `size` bytes of a body. It may lag behind the minimum rate by the header
 * timeout, and must be done by `due_ns`. */
void http_server_client_sends(struct http_server *server, struct http_client *client, size_t size,
                              int64_t due_ns);

/* The client has to send the rest of its request, or to take the answer, within the idle timeout as
 * a whole: a byte now and then does not prolong it. */
void http_server_client_goes_on(struct http_server *server, struct http_client *client);
