#pragma once

#include "exporter/http/request.h"

/* GET /api/v1/plugins: who pushes, and their knobs. GET and PUT
 * /api/v1/plugins/{plugin}/params/{param}: one knob, and turning it. */
void http_knobs_handle(struct http_request *request);
