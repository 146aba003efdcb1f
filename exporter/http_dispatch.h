#pragma once

#include <microhttpd.h>

/* What libmicrohttpd calls for requests; the context is the struct http_server. */

/* A request line has come: makes the struct http_request. */
void *http_dispatch_begin(void *context, const char *target, struct MHD_Connection *connection);

/* The head has come, a piece of the body, the end of it, or the request may go on after a wait. */
enum MHD_Result http_dispatch(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request_slot);

/* The answer is out, or the connection broke. */
void http_dispatch_completed(void *context, struct MHD_Connection *connection, void **request_slot,
                             enum MHD_RequestTerminationCode code);
