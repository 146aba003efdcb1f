#include "exporter/http/dispatch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "exporter/core/clock.h"
#include "exporter/http/auth.h"
#include "exporter/http/body.h"
#include "exporter/http/server_private.h"

/* A body sent in chunks has no announced length; beyond this many times the limit we hang up. */
enum { BODY_PATIENCE = 4 };

static const struct {
    const char *name;
    enum http_method method;
} methods[] = {
    {"DELETE", HTTP_DELETE}, {"GET", HTTP_GET}, {"HEAD", HTTP_HEAD},
    {"POST", HTTP_POST},     {"PUT", HTTP_PUT},
};

/* ---- what we refuse although libmicrohttpd lets it through ---- */

struct head_check {
    unsigned n_content_length;
    unsigned n_host;
    unsigned n_transfer_encoding;
    const char *encoding; /* of the transfer */
    const char *bad_name;
};

static bool is_token(const char *text) {
    static const char other[] = "!#$%&'*+-.^_`|~";
    for (const char *c = text; *c != '\0'; c++) {
        bool alnum =
            (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
        if (!alnum && strchr(other, *c) == NULL) {
            return false;
        }
    }
    return text[0] != '\0';
}

static enum MHD_Result check_header(void *context, enum MHD_ValueKind kind, const char *name,
                                    const char *value) {
    (void)kind;
    struct head_check *check = context;
    check->n_content_length += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    check->n_host += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        check->n_transfer_encoding++;
        check->encoding = value;
    }
    if (!is_token(name)) {
        check->bad_name = name;
    }
    return MHD_YES;
}

/* What is wrong with the head, or NULL. libmicrohttpd 0.9.75 accepts all of these; behind a proxy
 * that reads them otherwise, one request could be smuggled inside another. */
static const char *head_fault(const struct http_request *request, const char *version) {
    struct head_check check = {0};
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, check_header, &check);
    if (check.bad_name != NULL) {
        return "a header name has a character it must not have";
    }
    if (check.n_content_length > 1) {
        return "more than one Content-Length";
    }
    if (check.n_content_length > 0 && check.n_transfer_encoding > 0) {
        return "both Content-Length and Transfer-Encoding";
    }
    if (check.n_transfer_encoding > 1 ||
        (check.n_transfer_encoding == 1 &&
         (check.encoding == NULL || strcasecmp(check.encoding, "chunked") != 0))) {
        return "Transfer-Encoding is not just \"chunked\"";
    }
    if (strcmp(version, MHD_HTTP_VERSION_1_1) == 0 && check.n_host != 1) {
        return check.n_host == 0 ? "no Host" : "more than one Host";
    }
    const char *length = http_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (length != NULL && (length[0] == '\0' || strspn(length, "0123456789") != strlen(length))) {
        return "Content-Length is not a number";
    }
    return NULL;
}

/* ---- routing ---- */

/* How much of the path the route speaks for: 0 where it is not meant. */
static size_t route_reach(const struct http_route *route, const char *telemetry_path,
                          const char *path) {
    const char *route_path = route->path != NULL ? route->path : telemetry_path;
    size_t len = strlen(route_path);
    bool meant = strncmp(route_path, path, len) == 0 &&
                 (path[len] == '\0' || (route->prefix && path[len] == '/'));
    return meant ? len : 0;
}

static const struct http_route *find_route(const struct http_server *server, const char *path) {
    const char *telemetry_path = settings_string(server->config->settings, "web.telemetry-path");
    const struct http_route *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < server->n_routes; i++) {
        size_t reach = route_reach(&server->routes[i], telemetry_path, path);
        if (reach > longest) {
            found = &server->routes[i];
            longest = reach;
        }
    }
    return found;
}

static void reply_method_not_allowed(struct http_request *request) {
    struct buf allow CLEANUP_BUF = {0};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if ((request->route->methods & methods[i].method) != 0) {
            buf_printf(&allow, "%s%s", allow.len > 0 ? ", " : "", methods[i].name);
        }
    }
    http_reply_text(request, MHD_HTTP_METHOD_NOT_ALLOWED, "%s answers to %s only",
                    request->url.path, buf_str(&allow));
    if (request->response != NULL) {
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_ALLOW, buf_str(&allow));
    }
}

static enum http_method method_of(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (strcmp(methods[i].name, name) == 0) {
            return methods[i].method;
        }
    }
    return HTTP_OTHER;
}

/* Answers that the body is not taken. */
static void refuse_body(struct http_request *request, unsigned status, int code,
                        const struct error *why) {
    http_reply_text(request, status, "%s", why->text);
    if (request->route != NULL && request->route->refused != NULL) {
        request->route->refused(request, code, why->text);
    }
}

static void refuse_too_large(struct http_request *request) {
    struct error why;
    int r = error_set(&why, -EFBIG, "body is larger than %zu bytes (--web.max-body-size)",
                      request->server->max_body);
    refuse_body(request, MHD_HTTP_CONTENT_TOO_LARGE, r, &why);
}

/* Who does not ask before it sends would be cut off in the middle and not see the answer. */
static void refuse_for_now(struct http_request *request, int code, const struct error *why) {
    refuse_body(request, MHD_HTTP_SERVICE_UNAVAILABLE, code, why);
    if (request->response != NULL) {
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_RETRY_AFTER, "5");
    }
    request->drains = http_header(request, MHD_HTTP_HEADER_EXPECT) == NULL;
}

/* ---- the life of a request ---- */

static struct http_client *client_of(struct MHD_Connection *connection) {
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void *http_dispatch_begin(void *context, const char *target, struct MHD_Connection *connection) {
    struct http_server *server = context;
    struct http_client *client = client_of(connection);
    http_dispatch_end(client);
    struct http_request *request = calloc(1, sizeof(*request));
    client->request = request;
    if (request == NULL) {
        return NULL;
    }
    request->context = server->context;
    request->server = server;
    request->connection = connection;
    request->client = client;
    request->target = strdup(target);
    http_server_client_reads(server, client);
    return request;
}

/* Answers where the path leads nowhere, or not by this method. */
static void check_route(struct http_request *request) {
    if (request->route == NULL) {
        http_reply_text(request, MHD_HTTP_NOT_FOUND, "404: nothing here");
    } else if ((request->route->methods & request->method) == 0) {
        reply_method_not_allowed(request);
    }
}

/* Whether the handler is to get the body. */
static bool writes(const struct http_request *request) {
    return request->route->takes_body && (request->method & (HTTP_POST | HTTP_PUT)) != 0;
}

/* Answers where what is asked for cannot be, now that it is known who asks. Who may not write is
 * told so before the body comes: strangers could have us keep one on every connection. */
static void check_wish(struct http_request *request) {
    const char *length = http_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    check_route(request);
    if (request->status == 0 && request->has_body && writes(request) &&
        request->route->may_write != NULL) {
        request->route->may_write(request);
    }
    unsigned long long len = length != NULL ? strtoull(length, NULL, 10) : 0;
    if (request->status == 0 && len > request->server->max_body) {
        refuse_too_large(request);
    }
    struct error err;
    int r = request->status == 0 && writes(request) ? http_body_announce(request, len, &err) : 0;
    if (r < 0) {
        refuse_for_now(request, r, &err);
    }
}

/* Health is asked for by those who would restart us, and costs nothing: it is never refused. */
static bool is_within_rate(struct http_request *request) {
    struct http_server *server = request->server;
    bool health = request->route != NULL && request->route->health;
    return health || server->web_config == NULL ||
           http_rate_allow(&server->rate, web_config_rate_limit(server->web_config),
                           request->start_ns);
}

/* Looks at the head; may answer or hold the request at once. */
static void begin(struct http_request *request, const char *method, const char *version) {
    struct http_server *server = request->server;
    struct error error;
    request->begun = true;
    request->start_ns = clock_monotonic_ns();
    http_server_client_goes_on(server, request->client);
    request->method = method_of(method);

    const char *fault = head_fault(request, version);
    if (fault != NULL) {
        request->must_close = true;
        http_reply_text(request, MHD_HTTP_BAD_REQUEST, "bad request: %s", fault);
        return;
    }
    const char *length = http_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    request->has_body = http_header(request, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL ||
                        (length != NULL && strspn(length, "0") != strlen(length));
    if (!request->has_body || request->client->class == HTTP_CLIENT_IDLE) {
        request->client->class = HTTP_CLIENT_BUSY;
    }
    if (request->target == NULL || http_url_parse(request->target, &request->url, &error) < 0) {
        http_reply_text(request, MHD_HTTP_BAD_REQUEST, "bad request: %s",
                        request->target == NULL ? "out of memory" : error.text);
        return;
    }
    request->route = find_route(server, request->url.path);
    if (!is_within_rate(request)) {
        http_reply_text(request, MHD_HTTP_TOO_MANY_REQUESTS,
                        "rate limit of the web configuration reached, try again later");
        return;
    }
    http_auth_check(request);
    request->head_again = request->suspended;
    if (request->status == 0 && !request->held) {
        check_wish(request);
    }
}

/* The body comes from here on. */
static enum MHD_Result await_body(struct http_request *request) {
    request->due_ns = request->client->due_ns;
    http_server_client_sends(request->server, request->client, 0, request->due_ns);
    return MHD_YES;
}

/* Takes a piece of the body; false when the client has gone too far. */
static bool take_body(struct http_request *request, const char *data, size_t size) {
    size_t max = request->server->max_body;
    request->body_seen += size;
    http_server_client_sends(request->server, request->client, size, request->due_ns);
    if (request->status == 0 && request->body_seen > max) {
        refuse_too_large(request);
        http_body_drop(request);
    }
    if (request->status == 0 && request->route != NULL && writes(request)) {
        struct error err;
        int r = http_body_add(request, data, size, &err);
        if (r < 0) {
            refuse_for_now(request, r, &err);
            http_body_drop(request);
        }
    }
    return request->body_seen <= BODY_PATIENCE * max;
}

/* Whom a reload has overtaken must come in anew, by the certificates of the day, and is told so.
 * The response may be shared, but libmicrohttpd also heeds the client's own wish: it gets one. */
static void part_if_overtaken(const struct http_request *request) {
    if (request->client->web_config != request->server->web_config) {
        MHD_set_connection_value(request->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONNECTION,
                                 "close");
    }
}

static enum MHD_Result send_answer(struct http_request *request) {
    if (request->response == NULL) {
        return MHD_NO;
    }
    if (request->must_close) { /* what follows in the stream is not looked at */
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    part_if_overtaken(request);
    http_server_client_goes_on(request->server, request->client);
    request->client->look_ns = INT64_MAX; /* who has said all may close its side and listen */
    return MHD_queue_response(request->connection, request->status, request->response);
}

enum MHD_Result http_dispatch(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request_slot) {
    (void)context;
    (void)request_slot;
    (void)url;
    struct http_request *request = client_of(connection)->request;
    if (request == NULL) {
        return MHD_NO;
    }
    request->suspended = false;
    if (!request->begun) {
        begin(request, method, version);
        /* Answered before its body came: it is not read, and the connection ends with the answer.
         * Otherwise the answer waits for the next call, which keeps the connection alive. */
        bool early = (request->has_body && !request->drains) || request->must_close;
        if (request->status != 0 && early) {
            return send_answer(request);
        }
        return request->has_body && !request->held ? await_body(request) : MHD_YES;
    }
    if (request->head_again) {
        request->head_again = false;
        if (request->status == 0) {
            check_wish(request);
        }
        if ((request->status == 0 || request->drains) && request->has_body) {
            return await_body(request);
        }
    }
    if (*upload_size > 0) {
        size_t size = *upload_size;
        *upload_size = 0;
        return take_body(request, upload, size) ? MHD_YES : MHD_NO;
    }
    request->client->class = HTTP_CLIENT_BUSY;
    if (request->status == 0 && request->server->is_shut) {
        http_reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "waap is stopping");
    }
    if (request->status == 0) {
        request->route->handle(request);
    }
    /* One that was held and released within the call is called for once more. */
    return request->status != 0 && !request->suspended ? send_answer(request) : MHD_YES;
}

void http_dispatch_completed(void *context, struct MHD_Connection *connection, void **request_slot,
                             enum MHD_RequestTerminationCode code) {
    (void)context;
    (void)code;
    *request_slot = NULL;
    http_dispatch_end(client_of(connection));
}

void http_dispatch_end(struct http_client *client) {
    struct http_request *request = TAKE(client->request);
    if (request == NULL) {
        return;
    }
    struct http_server *server = request->server;
    assert(!request->held);
    client->due_ns = INT64_MAX;
    http_server_client_sent(server, client);
    http_sending_end(request);
    if (request->begun && request->status != 0) {
        double seconds = (double)(clock_monotonic_ns() - request->start_ns) / 1e9;
        http_stats_note(server->stats, request->route != NULL ? request->route->name : "other",
                        request->status, seconds);
        http_gate_answered(&server->gate, client);
    }
    if (request->must_close) {
        shutdown(client->fd, SHUT_RDWR);
    }
    if (request->owns_response && request->response != NULL) {
        MHD_destroy_response(request->response);
    }
    if (request->authorization != NULL) {
        explicit_bzero(request->authorization, strlen(request->authorization));
    }
    if (request->state != NULL) {
        request->free_state(request->state);
    }
    http_url_finish(&request->url);
    http_body_drop(request);
    free(request->authorization);
    free(request->user);
    free(request->target);
    free(request);
}
