#pragma once

#include <microhttpd.h>

#include "exporter/http/gate.h"

/* What libmicrohttpd calls for requests; the context is the struct http_server. */

/* A request line has come: makes the struct http_request, which belongs to the client. */
void *http_dispatch_begin(void *context, const char *target, struct MHD_Connection *connection);

/* The head has come, a piece of the body, the end of it, or the request may go on after a wait. */
enum MHD_Result http_dispatch(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request_slot);

/* The answer is out, or the connection broke. */
void http_dispatch_completed(void *context, struct MHD_Connection *connection, void **request_slot,
                             enum MHD_RequestTerminationCode code);

/* Ends and frees the client's request, if there is one. libmicrohttpd does not report the end of
 * every request (0.9.75 and 1.0.1: not of one with more parameters or cookies than its pool holds),
 * so a request also ends when the next one begins and when its connection closes. */
void http_dispatch_end(struct http_client *client);
