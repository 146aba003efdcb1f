#pragma once

#include "exporter/http/request.h"

/* The bodies of requests while they are received and until they are answered. All together have a
 * limit; small ones are not counted, so that they get through while large ones are held: as many as
 * there may be connections. */

/* Notes the length that the head announces (0: none). Room is counted as bytes arrive, so an upload
 * that sends nothing takes none. -EBUSY with a reason if there is too little at this moment. */
int http_body_announce(struct http_request *request, size_t len, struct error *err);

/* Adds a piece. -EBUSY as above; that memory is out stands in the body itself. */
int http_body_add(struct http_request *request, const char *data, size_t size, struct error *err);

/* Frees the body and gives its room back. */
void http_body_drop(struct http_request *request);
