#pragma once

#include "exporter/core/error.h"
#include "exporter/http/request.h"
#include "exporter/http/stats.h"
#include "exporter/loop/loop.h"
#include "exporter/net/listen.h"
#include "exporter/settings/config.h"

/* HTTP on the event loop: libmicrohttpd behind our own accept, gate, limits and checks. */

/* One libmicrohttpd daemon on our loop. */
struct http_port {
    struct MHD_Daemon *mhd; /* NULL: not needed yet */
    struct loop_source source;
    struct loop_pump pump;
};

/* Changed in exporter/http only. */
struct http_server {
    void *context; /* of the handlers */
    struct loop *loop;
    const struct http_route *routes;
    size_t n_routes;
    struct config *config;
    struct web_config *web_config; /* for new connections and requests; NULL: plain and open */
    struct http_listeners *listeners;
    struct http_port plain;
    struct http_port secure; /* TLS; web_config decides which of the two gets a connection */
    struct http_gate gate;
    struct http_stats *stats;
    struct worker *auth_worker;
    struct loop_timer sweep;
    unsigned idle_timeout_s;
    size_t max_body;
    size_t max_bodies; /* of all together, small ones not counted */
    size_t bodies_room;
    struct http_sendings sendings;
    size_t pool_size; /* memory of libmicrohttpd for a connection's head and response, at least */
    size_t max_scrapes;
    size_t n_scrapes;
    size_t max_tasks; /* other requests that wait; and as many polls, and as many uploads */
    size_t n_tasks;
    size_t n_polls; /* wait for something that may not happen */
    size_t n_uploads;
    size_t n_checks; /* of passwords, waiting or under way */
    struct http_checks checks;
    bool is_checking;
    int64_t rate_due_ns;
    bool is_closing; /* holds no further requests */
    bool is_shut;    /* the handlers' data may be gone */
    bool health_is_open;
};

/* Handlers find `context` in each request. */
int http_server_create(void *context, struct loop *loop, const struct http_route *routes,
                       size_t n_routes, struct http_server **ret_server, struct error *err);

/* Applies listen addresses, limits and the web configuration (NULL: plain and open); existing
 * connections stay. If it fails, nothing has changed. */
int http_server_configure(struct http_server *server, struct config *config,
                          struct web_config *web_config, struct error *err);

/* Stops listening, and holds no further requests; requests under way go on. */
void http_server_close(struct http_server *server);

/* Calls no handler any more: further requests on existing connections get 503. */
void http_server_shut(struct http_server *server);

/* How many requests are held or being answered, and how many are held. */
size_t http_server_n_busy(const struct http_server *server);
size_t http_server_n_held(const struct http_server *server);

/* Closes all connections and frees the server. No request may be held. Accepts NULL. */
void http_server_destroy(struct http_server *server);

/* Looks up the host names and groups in the settings under `web`, which may take long. */
void http_server_look_up(const struct settings *settings, struct listen_names *names);

/* Listens as these settings require, with the names that were looked up. */
int http_server_listen(struct http_listeners *listeners, const struct settings *settings,
                       const struct listen_names *names, struct error *err);

/* Handlers of /-/healthy and /-/ready, for supervisors. */
void http_health_alive(struct http_request *request);
void http_health_ready(struct http_request *request);

/* ---- deadlines, for request.c ---- */

/* The client has sent something; check soon whether it has closed the connection since. */
void http_server_look_soon(struct http_server *server, struct http_client *client);

/* The client must send the head of a request within the header timeout. */
void http_server_expect_head(struct http_server *server, struct http_client *client);

/* The client has sent `size` bytes of a body. It may lag behind the minimum rate by the header
 * timeout, and must finish by `due_ns`. */
void http_server_expect_body(struct http_server *server, struct http_client *client, size_t size,
                             int64_t due_ns);

/* The client must send the rest of its request, or read the reply, within the idle timeout in all:
 * a byte now and then does not extend it. */
void http_server_expect_progress(struct http_server *server, struct http_client *client);
