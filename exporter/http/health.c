#include "exporter/http/health.h"

#include "exporter/http/server.h"

void http_health_alive(struct http_request *request) {
    http_reply_text(request, MHD_HTTP_OK, "waap is healthy.");
}

void http_health_ready(struct http_request *request) {
    if (http_server_is_closing(request->server)) {
        http_reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "waap is stopping.");
    } else {
        http_reply_text(request, MHD_HTTP_OK, "waap is ready.");
    }
}
