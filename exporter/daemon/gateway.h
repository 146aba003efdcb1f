#pragma once

#include "exporter/http/request.h"

/* What clients of the Pushgateway ask for, under the same paths and with the same answers. */

/* POST, PUT and DELETE /metrics/job/<job>{/<label>/<value>}. Beyond the Pushgateway: ?mode=add has
 * counters and histograms add to what is there, ?ttl=90s has the series vanish that long after the
 * push. */
void http_gateway_push(struct http_request *request);

/* DELETE /api/v1/series?match[]=SELECTOR: pushed series that a selector means vanish; answers how
 * many. */
void http_gateway_delete(struct http_request *request);

/* GET /api/v1/metrics: all groups with their series. */
void http_gateway_metrics(struct http_request *request);

/* GET /api/v1/status: build, flags, start time. */
void http_gateway_status(struct http_request *request);

/* PUT /api/v1/admin/wipe, behind --web.enable-admin-api: everything pushed is dropped. */
void http_gateway_wipe(struct http_request *request);
