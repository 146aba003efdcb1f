#pragma once

#include "exporter/http_request.h"

/* GET /: name, version, links, and how the collectors do. */
void http_pages_landing(struct http_request *request);
