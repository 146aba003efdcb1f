#pragma once

#include "exporter/http/request.h"

/* Handlers of the routes in serve.c. */

/* GET /metrics: collects and replies with the page; `collect[]` or `exclude[]` select collectors.
 */
void http_metrics_handle(struct http_request *request);

/* GET /: the live page, and its style and script. */
void http_live_page(struct http_request *request);
void http_live_file(struct http_request *request);

/* POST /-/reload and /-/quit, if --web.enable-lifecycle allows them, for clients that may write. */
void http_lifecycle_reload(struct http_request *request);
void http_lifecycle_quit(struct http_request *request);
