#pragma once

#include "exporter/core/error.h"
#include "placement/client/promql_answer.h"
#include "placement/client/web_client.h"

/* Queries to Prometheus and what speaks like it: Thanos, Mimir, VictoriaMetrics; their path prefix
 * is part of the client's address. */

enum { PROMQL_MAX_SERIES = 200000 };

/* Asks for the value of an expression at this moment. `answer` is emptied first; the caller frees
 * it with promql_answer_finish. Errors name the address, the status code and the server's own
 * words. */
int promql_query(struct web_client *client, const char *expression, struct promql_answer *answer,
                 struct error *err);
