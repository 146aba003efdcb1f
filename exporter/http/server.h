#pragma once

#include "exporter/core/error.h"
#include "exporter/http/request.h"
#include "exporter/http/stats.h"
#include "exporter/http/web_config.h"
#include "exporter/loop/loop.h"
#include "exporter/settings/config.h"

/* HTTP on the event loop: libmicrohttpd with our own accept, gate, limits and checks in front. */

/* Handlers find `context` in each request. */
int http_server_create(void *context, struct loop *loop, const struct http_route *routes,
                       size_t n_routes, struct http_server **ret_server, struct error *err);

/* Applies listen addresses, limits and the web configuration (NULL: plain and open); connections
 * that are there stay. Fails before anything has changed. */
int http_server_configure(struct http_server *server, struct config *config,
                          struct web_config *web_config, struct error *err);

/* Stops listening, and holds no further request; what is under way goes on. */
void http_server_close(struct http_server *server);
bool http_server_is_closing(const struct http_server *server);

/* Asks no handler any more: connections that are there get 503 for what they still send. */
void http_server_shut(struct http_server *server);

/* How many requests are held back or being answered. */
size_t http_server_n_busy(const struct http_server *server);
size_t http_server_n_held(const struct http_server *server);

/* The same without those that only wait for their password to be checked. */
size_t http_server_n_in_flight(const struct http_server *server);

/* Ends all connections and frees the server. No request may be held any more. Accepts NULL. */
void http_server_destroy(struct http_server *server);

/* The web configuration in force, or NULL; the server keeps its reference. */
struct web_config *http_server_web_config(const struct http_server *server);

struct http_stats *http_server_stats(struct http_server *server);
const struct http_sendings *http_server_sendings(const struct http_server *server);
const struct http_gate *http_server_gate(const struct http_server *server);
