#pragma once

#include "exporter/http/request.h"

struct daemon;

/* Handlers of the routes in serve.c. */

/* GET /metrics: collects and replies with the page; `collect[]` or `exclude[]` select collectors.
 */
void http_metrics_handle(struct http_request *request);

/* GET /: the live page, and its style and script. */
void http_live_page(struct http_request *request);
void http_live_file(struct http_request *request);

/* POST /-/reload and /-/quit, if --web.enable-lifecycle allows them, for clients that may write. */
bool http_lifecycle_may_use(struct http_request *request);
void http_lifecycle_reload(struct http_request *request);
void http_lifecycle_quit(struct http_request *request);

/* POST /api/v1/push: the messages of the plugin socket as one object, an array or lines, gzip or
 * not, of any number of plugins and groups; applied as a whole or not at all. */
void http_push_handle(struct http_request *request);

/* GET /api/v1/plugins and /api/v1/plugins/{plugin}: plugins and their knobs. GET …/params: the
 * knobs of one, with `wait` once they change. GET and PUT …/params/{param}: shows or sets one. */
void http_knobs_handle(struct http_request *request);

/* Before the first request, and at the end: replies to those that wait. */
void http_knobs_listen(struct daemon *daemon);
void http_knobs_release(struct daemon *daemon);

/* POST, PUT and DELETE /metrics/job/<job>{/<label>/<value>}, as the Pushgateway has them. In
 * addition, ?mode=add adds to counters and histograms, and ?ttl=90s lets the series expire after
 * the push. */
void http_gateway_push(struct http_request *request);

/* DELETE /api/v1/series?match[]=SELECTOR: deletes pushed series and replies how many. */
void http_gateway_delete(struct http_request *request);

/* GET /api/v1/metrics: all groups with their series. */
void http_gateway_metrics(struct http_request *request);

/* GET /api/v1/status: build, flags, start time. */
void http_gateway_status(struct http_request *request);

/* PUT /api/v1/admin/wipe, if --web.enable-admin-api allows it: deletes all pushed series. */
bool http_gateway_may_wipe(struct http_request *request);
void http_gateway_wipe(struct http_request *request);
