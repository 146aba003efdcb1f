#pragma once

#include "exporter/http/request.h"
#include "exporter/push/store.h"

/* Finds and claims the owner of that identity for the client of the request, as push_store_owner
 * and push_claim do. Rejections are counted. */
int http_push_owner(const struct http_request *request, const struct push_identity *identity,
                    struct push_owner **ret_owner, struct error *err);

/* Whether the owner may push now, and that it has pushed so much. A request is one body, however
 * long: what it has beyond the rate is owed by the next ones. -EAGAIN, counted. */
int http_push_check_rate(struct push_store *store, struct push_owner *owner, struct error *err);
void http_push_spend_rate(const struct push_store *store, struct push_owner *owner,
                          size_t n_updates);
