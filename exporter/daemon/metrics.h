#pragma once

#include "exporter/http/request.h"

/* GET /metrics: collects, renders and answers, with `collect[]` or `exclude[]` for a part of it. */
void http_metrics_handle(struct http_request *request);
