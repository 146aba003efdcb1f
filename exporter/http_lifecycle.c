#include "exporter/http_lifecycle.h"

#include "exporter/daemon.h"
#include "exporter/http_access.h"
#include "exporter/reload.h"

void http_lifecycle_healthy(struct http_request *request) {
    http_reply_text(request, MHD_HTTP_OK, "waap is healthy.");
}

void http_lifecycle_ready(struct http_request *request) {
    if (request->daemon->stopping) {
        http_reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "waap is stopping.");
    } else {
        http_reply_text(request, MHD_HTTP_OK, "waap is ready.");
    }
}

static bool allowed(struct http_request *request) {
    if (settings_bool(request->daemon->config->settings, "web.enable-lifecycle")) {
        return http_access_may_write(request);
    }
    http_reply_text(request, MHD_HTTP_FORBIDDEN,
                    "lifecycle requests are not allowed: start with --web.enable-lifecycle");
    return false;
}

void http_lifecycle_reload(struct http_request *request) {
    if (allowed(request) && http_hold(request, NULL)) {
        reload_start(request->daemon, request);
    }
}

void http_lifecycle_quit(struct http_request *request) {
    if (allowed(request)) {
        http_reply_text(request, MHD_HTTP_OK, "waap stops.");
        loop_stop(request->daemon->loop);
    }
}
