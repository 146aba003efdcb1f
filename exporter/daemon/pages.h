#pragma once

#include "exporter/http/request.h"

/* Answers with the page for people: what there is without a script, charts and knobs with it. */
void http_pages_landing(struct http_request *request);

/* Answers with the page's style or script. */
void http_pages_file(struct http_request *request);
