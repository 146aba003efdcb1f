#pragma once

#include <stdint.h>

#include "exporter/metrics/labels.h"
#include "exporter/metrics/snapshot.h"

/* Counts requests by status and handler, and how long they took. On the loop thread. */
struct http_stats;

struct http_stats *http_stats_create(void);
void http_stats_destroy(struct http_stats *stats);

/* Counts one request; `handler` must be a static string. */
void http_stats_note(struct http_stats *stats, const char *handler, unsigned code, double seconds);

/* Adds waap_http_request_duration_seconds and waap_http_requests_total. */
void http_stats_collect(const struct http_stats *stats, struct snapshot *out);

/* Their descriptions, ended by a nameless row. */
extern const struct metric_desc http_stats_metrics[];
