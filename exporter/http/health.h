#pragma once

#include "exporter/http/request.h"

/* /-/healthy and /-/ready, for supervisors. */
void http_health_alive(struct http_request *request);
void http_health_ready(struct http_request *request);
