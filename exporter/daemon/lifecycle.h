#pragma once

#include "exporter/http/request.h"

/* /-/reload and /-/quit, if --web.enable-lifecycle allows them, for clients that may write. */
void http_lifecycle_reload(struct http_request *request);
void http_lifecycle_quit(struct http_request *request);
