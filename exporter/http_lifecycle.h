#pragma once

#include "exporter/http_request.h"

/* /-/healthy and /-/ready for supervisors; /-/reload and /-/quit for operators who allowed them
 * with --web.enable-lifecycle, from where writing is allowed. */
void http_lifecycle_healthy(struct http_request *request);
void http_lifecycle_ready(struct http_request *request);
void http_lifecycle_reload(struct http_request *request);
void http_lifecycle_quit(struct http_request *request);
