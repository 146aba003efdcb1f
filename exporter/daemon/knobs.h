#pragma once

#include "exporter/http/request.h"

/* GET /api/v1/plugins: plugins and their knobs. GET and PUT
 * /api/v1/plugins/{plugin}/params/{param}: shows or sets one knob. */
void http_knobs_handle(struct http_request *request);
