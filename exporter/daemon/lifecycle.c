#include "exporter/daemon/lifecycle.h"

#include "exporter/daemon/daemon.h"
#include "exporter/daemon/reload.h"
#include "exporter/http/access.h"

static bool allowed(struct http_request *request) {
    if (settings_bool(daemon_of(request)->config->settings, "web.enable-lifecycle")) {
        return http_access_may_write(request);
    }
    http_reply_text(request, MHD_HTTP_FORBIDDEN,
                    "lifecycle requests are not allowed: start with --web.enable-lifecycle");
    return false;
}

void http_lifecycle_reload(struct http_request *request) {
    if (allowed(request) && http_hold(request)) {
        reload_start(request->context, request);
    }
}

void http_lifecycle_quit(struct http_request *request) {
    if (allowed(request)) {
        http_reply_text(request, MHD_HTTP_OK, "waap stops.");
        loop_stop(daemon_of(request)->loop);
    }
}
