#pragma once

#include "exporter/http/request.h"

/* Lets a request in, refuses it, or holds it until a worker has checked its password; then it goes
 * on or is refused. */
void http_auth_check(struct http_request *request);
