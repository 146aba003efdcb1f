#pragma once

#include "exporter/http_request.h"

/* POST /api/v1/push: what plugins say on their channel, as one object, an array or lines, gzip or
 * not; applied as a whole or not at all. */
void http_push_handle(struct http_request *request);
