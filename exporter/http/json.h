#pragma once

#include "exporter/http/request.h"

/* Answers of /api/v1: {"status":"success","data":…} and {"status":"error","error":…}. */

/* Answers with the JSON in `data`, which is emptied. */
void http_json_reply(struct http_request *request, struct buf *data);

/* Answers with an error. */
void http_json_fail(struct http_request *request, unsigned status, const char *text);

/* The status that says the same as a negative errno. */
unsigned http_json_status(int code);
