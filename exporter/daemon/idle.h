#pragma once

#include "exporter/http/request.h"

/* Calls `handle` when the push store is between batches and copies: at once or, with the request
 * held until then, later. What is under way would otherwise be taken to its end within one turn of
 * the loop. `handle` answers and does not hold the request. */
void http_when_idle(struct http_request *request, void (*handle)(struct http_request *request));
