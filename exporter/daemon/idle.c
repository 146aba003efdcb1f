#include "exporter/daemon/idle.h"

#include <stdlib.h>

#include "exporter/core/container_of.h"
#include "exporter/daemon/daemon.h"

struct waiting {
    struct loop_timer turn;
    struct http_request *request;
    void (*handle)(struct http_request *request);
};

static void look(struct loop_timer *timer) {
    struct waiting *waiting = CONTAINER_OF(timer, struct waiting, turn);
    struct http_request *request = waiting->request;
    if (push_store_is_busy(daemon_of(request)->push_store)) {
        timer->due_ns = 0;
        return;
    }
    loop_timer_remove(daemon_of(request)->loop, timer);
    waiting->handle(request);
    free(waiting);
}

void http_when_idle(struct http_request *request, void (*handle)(struct http_request *request)) {
    if (!push_store_is_busy(daemon_of(request)->push_store)) {
        handle(request);
        return;
    }
    struct waiting *waiting = malloc(sizeof(*waiting));
    if (waiting == NULL) {
        http_reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    } else if (http_hold(request)) {
        *waiting = (struct waiting){{.due_ns = 0, .fire = look}, request, handle};
        loop_timer_add(daemon_of(request)->loop, &waiting->turn);
    } else {
        free(waiting);
    }
}
