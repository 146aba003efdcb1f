#pragma once

#include <stdint.h>

#include "exporter/metrics/labels.h"
#include "exporter/metrics/snapshot.h"

/* How many requests were answered how, and how long that took. On the loop thread. */
struct http_stats;

struct http_stats *http_stats_create(void); /* NULL when memory is out */
void http_stats_destroy(struct http_stats *stats);

/* Counts one answered request; `handler` must be a string that stays. */
void http_stats_note(struct http_stats *stats, const char *handler, unsigned code, double seconds);

/* Adds waap_http_requests_total and waap_http_request_duration_seconds. */
void http_stats_collect(const struct http_stats *stats, struct snapshot *out);

extern const struct metric_desc http_stats_requests;
extern const struct metric_desc http_stats_duration;
