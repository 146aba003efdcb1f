#pragma once

#include "exporter/http_request.h"
#include "exporter/push_store.h"

/* POST /api/v1/push: what plugins say on their channel, as one object, an array or lines, gzip or
 * not, of any number of plugins and groups; applied as a whole or not at all. */
void http_push_handle(struct http_request *request);

/* The owner of that identity for who sends the request, as push_store_owner and push_claim have it,
 * if it may push that many metrics now; -EAGAIN if not. What is refused is counted. */
int http_push_owner(const struct http_request *request, const struct push_identity *identity,
                    size_t n_updates, struct push_owner **ret_owner, struct error *err);
