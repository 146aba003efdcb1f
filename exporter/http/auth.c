#include "exporter/http/auth.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/http/server_private.h"
#include "exporter/http/users.h"

static void reply_unauthorized(struct http_request *request) {
    http_reply_text(request, MHD_HTTP_UNAUTHORIZED, "Unauthorized");
    if (request->response != NULL) {
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                                "Basic realm=\"waap\"");
    }
}

static void note_failure(struct http_request *request) {
    http_checks_note_failure(&request->server->checks, &request->client->address,
                             clock_monotonic_ns());
}

static void auth_run(struct worker_job *job) {
    struct http_request *request = CONTAINER_OF(job, struct http_request, auth_job);
    request->authorized =
        users_verify(web_config_users(request->auth_config), request->authorization);
}

static void check_next(struct http_server *server);

static void auth_done(struct worker_job *job) {
    struct http_request *request = CONTAINER_OF(job, struct http_request, auth_job);
    struct http_server *server = request->server;
    web_config_unref(TAKE(request->auth_config));
    if (request->authorized) {
        request->user = users_name(request->authorization);
        http_release(request);
    } else {
        note_failure(request);
        reply_unauthorized(request);
    }
    server->is_checking = false;
    check_next(server);
}

static void reply_unavailable(struct http_check *check) {
    struct http_request *request = CONTAINER_OF(check, struct http_request, check);
    web_config_unref(TAKE(request->auth_config));
    http_reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                    "%zu passwords wait to be checked, try again later",
                    request->server->checks.n_waiting);
}

static void check_next(struct http_server *server) {
    struct http_check *check = server->is_checking ? NULL : http_checks_take(&server->checks);
    while (check != NULL && server->is_closing) {
        reply_unavailable(check);
        check = http_checks_take(&server->checks);
    }
    if (check != NULL) {
        struct http_request *request = CONTAINER_OF(check, struct http_request, check);
        server->is_checking = true;
        request->auth_job = (struct worker_job){.run = auth_run, .done = auth_done};
        worker_submit(server->auth_worker, &request->auth_job);
    }
}

/* Those held are not counted among the scrapes: who guesses passwords cannot take their places. */
static void hold_for_check(struct http_request *request, const char *authorization) {
    struct http_server *server = request->server;
    request->check = (struct http_check){.address = request->client->address};
    struct http_check *excess =
        server->is_closing ? &request->check : http_checks_add(&server->checks, &request->check);
    if (excess != NULL) {
        reply_unavailable(excess);
    }
    if (excess == &request->check) {
        return;
    }
    http_hold_among(request, &server->n_checks);
    request->authorization = strdup(authorization);
    request->auth_config = web_config_ref(server->web_config);
    check_next(server);
}

void http_auth_check(struct http_request *request) {
    struct http_server *server = request->server;
    struct users *users = server->web_config != NULL ? web_config_users(server->web_config) : NULL;
    bool exempt = request->route != NULL && request->route->health && server->health_is_open;
    if (users == NULL || exempt) {
        return;
    }
    const char *authorization = http_header(request, MHD_HTTP_HEADER_AUTHORIZATION);
    enum users_verdict verdict = users_lookup(users, authorization);
    if (verdict == USERS_DENIED) {
        if (authorization != NULL) { /* browsers ask without a password first */
            note_failure(request);
        }
        reply_unauthorized(request);
    } else if (verdict == USERS_UNKNOWN) {
        hold_for_check(request, authorization);
    } else {
        request->user = users_name(authorization);
    }
}
