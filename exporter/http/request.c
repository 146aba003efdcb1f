#include "exporter/http/request.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/memory.h"
#include "exporter/http/server.h"
#include "exporter/net/network.h"

/* Bodies up to SMALL_BODY are not counted. A chunked body has no announced length: the connection
 * closes if it exceeds the limit BODY_PATIENCE times. */
enum { SMALL_BODY = 64 << 10, BODY_PATIENCE = 4 };

static const struct {
    const char *name;
    enum http_method method;
} methods[] = {
    {"DELETE", HTTP_DELETE}, {"GET", HTTP_GET}, {"HEAD", HTTP_HEAD},
    {"POST", HTTP_POST},     {"PUT", HTTP_PUT},
};

const char *http_header(const struct http_request *request, const char *name) {
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

bool http_has_room(const struct http_request *request, size_t n) {
    /* Bytes for a header beside its text, and for the head of a response. */
    enum { PER_HEADER = 96, RESPONSE_HEAD = 2048 };
    size_t pool_size = request->server->pool_size;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    int n_values = MHD_get_connection_values(
        request->connection, MHD_HEADER_KIND | MHD_COOKIE_KIND | MHD_GET_ARGUMENT_KIND, NULL, NULL);
    /* libmicrohttpd reads into half of the pool, and into more only if the head does not fit. */
    return info != NULL && info->header_size <= pool_size / 4 &&
           pool_size / 2 + PER_HEADER * (size_t)n_values + n + RESPONSE_HEAD <= pool_size;
}

/* ---- waiting ---- */

static void hold(struct http_request *request, size_t *among) {
    request->held_among = among;
    (*among)++;
    request->client->class = HTTP_CLIENT_HELD;
    request->client->due_ns = INT64_MAX;
    request->client->look_ns = INT64_MAX;
    MHD_suspend_connection(request->connection);
}

static void reply_too_many(struct http_request *request, size_t max) {
    http_reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                    "limit of %zu concurrent requests reached, try again later", max);
}

static bool is_held_among(const struct http_client *client, const size_t *among) {
    return client->class == HTTP_CLIENT_HELD && client->request->held_among == among;
}

static size_t n_held_of(const struct http_server *server, const size_t *among,
                        const struct in6_addr *peer) {
    size_t n = 0;
    for (const struct http_client *c = server->gate.oldest; c != NULL; c = c->younger) {
        n += is_held_among(c, among) && network_is_same_peer(&c->address, peer);
    }
    return n;
}

/* A scrape of the peer that has most scrapes held, if that is more than `peer` has. Considers only
 * the youngest connections, which bounds the time it takes. */
static struct http_request *find_excess(const struct http_server *server,
                                        const struct in6_addr *peer) {
    enum { MAX_LOOKS = 16 };
    struct http_request *excess = NULL;
    size_t most = n_held_of(server, &server->n_scrapes, peer) + 1;
    size_t n_looks = 0;
    for (const struct http_client *c = server->gate.youngest; c != NULL && n_looks < MAX_LOOKS;
         c = c->older) {
        if (!is_held_among(c, &server->n_scrapes)) {
            continue;
        }
        n_looks++;
        size_t n = n_held_of(server, &server->n_scrapes, &c->address);
        if (n > most) {
            excess = c->request;
            most = n;
        }
    }
    return excess;
}

/* Replies if the server holds no more requests. */
static bool is_open(struct http_request *request) {
    if (request->server->is_closing) {
        http_reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "waap is stopping");
    }
    return !request->server->is_closing;
}

bool http_hold_scrape(struct http_request *request, void (*cancel)(struct http_request *request)) {
    struct http_server *server = request->server;
    if (!is_open(request)) {
        return false;
    }
    if (server->n_scrapes >= server->max_scrapes) {
        struct http_request *excess = find_excess(server, &request->client->address);
        if (excess == NULL) {
            reply_too_many(request, server->max_scrapes);
            return false;
        }
        excess->cancel(excess);
        reply_too_many(excess, server->max_scrapes);
    }
    request->cancel = cancel;
    hold(request, &server->n_scrapes);
    return true;
}

/* Whether one more request that cannot be cancelled may be held; one peer gets three quarters. */
static bool has_place(const struct http_request *request, const size_t *among) {
    size_t max = request->server->max_tasks;
    size_t n_own = n_held_of(request->server, among, &request->client->address);
    return *among < max && n_own < max - max / 4;
}

static bool hold_among(struct http_request *request, size_t *among) {
    struct http_server *server = request->server;
    if (!is_open(request)) {
        return false;
    }
    if (!has_place(request, among)) {
        reply_too_many(request, server->max_tasks);
        return false;
    }
    hold(request, among);
    return true;
}

bool http_hold(struct http_request *request) {
    return hold_among(request, &request->server->n_tasks);
}

bool http_may_hold_poll(const struct http_request *request) {
    return has_place(request, &request->server->n_polls);
}

bool http_hold_poll(struct http_request *request) {
    return hold_among(request, &request->server->n_polls);
}

bool http_hold_upload(struct http_request *request) {
    struct http_server *server = request->server;
    if (server->is_closing || !has_place(request, &server->n_uploads)) {
        return false;
    }
    hold(request, &server->n_uploads);
    return true;
}

/* ---- bodies ---- */

static bool has_room(const struct http_server *server, size_t others, size_t room) {
    return room <= server->max_bodies && others <= server->max_bodies - room;
}

static int error_no_room(const struct http_server *server, size_t others, size_t room,
                         struct error *err) {
    return error_set(err, -EBUSY,
                     "no room for a body of %zu bytes: others take %zu of %zu "
                     "(--web.max-bodies-size), try again later",
                     room, others, server->max_bodies);
}

static int count_room(struct http_request *request, size_t room, struct error *err) {
    struct http_server *server = request->server;
    size_t others = server->bodies_room - request->body_room;
    if (!has_room(server, others, room)) {
        return error_no_room(server, others, room, err);
    }
    server->bodies_room = others + room;
    request->body_room = room;
    return 0;
}

int http_body_announce(struct http_request *request, size_t len, struct error *err) {
    const struct http_server *server = request->server;
    request->body_announced = len;
    return len > SMALL_BODY && !has_room(server, server->bodies_room, len)
               ? error_no_room(server, server->bodies_room, len, err)
               : 0;
}

int http_body_add(struct http_request *request, const char *data, size_t size, struct error *err) {
    struct buf *body = &request->body;
    size_t len = body->len + size;
    if (len > SMALL_BODY && len > request->body_room) {
        size_t announced = request->body_announced;
        size_t max = announced >= len ? announced : request->server->max_body;
        size_t room = 2 * len < max ? 2 * len : max > len ? max : len;
        int r = count_room(request, room, err);
        if (r < 0) {
            return r;
        }
    }
    /* No more than was counted: buf_add alone would double the buffer. */
    if (request->body_room > 0 && request->body_room >= body->cap) {
        body->cap = request->body_room + 1;
        body->data = mem_resize(body->data, body->cap, 1);
    }
    buf_add(body, data, size);
    return 0;
}

void http_body_drop(struct http_request *request) {
    buf_finish(&request->body);
    request->server->bodies_room -= request->body_room;
    request->body_room = 0;
}

/* Replies that the body is not accepted. */
static void reject_body(struct http_request *request, unsigned status, int code,
                        const struct error *why) {
    http_reply_text(request, status, "%s", why->text);
    if (request->route != NULL && request->route->refused != NULL) {
        request->route->refused(request, code, why->text);
    }
}

static void reject_too_large(struct http_request *request) {
    struct error why;
    int r = error_set(&why, -EFBIG, "body is larger than %zu bytes (--web.max-body-size)",
                      request->server->max_body);
    reject_body(request, MHD_HTTP_CONTENT_TOO_LARGE, r, &why);
}

static void reject_for_now(struct http_request *request, int code, const struct error *why) {
    reject_body(request, MHD_HTTP_SERVICE_UNAVAILABLE, code, why);
    http_add_header(request, MHD_HTTP_HEADER_RETRY_AFTER, "5");
}

/* Whether the handler gets the body. */
static bool writes(const struct http_request *request) {
    return request->route->takes_body && (request->method & (HTTP_POST | HTTP_PUT)) != 0;
}

/* Replies if the client may not use the method. */
static void check_rights(struct http_request *request) {
    bool is_reading = (request->method & (HTTP_GET | HTTP_HEAD)) != 0;
    if (!is_reading && request->route->may_write != NULL) {
        request->route->may_write(request);
    }
}

/* A body that is kept is only received from clients that may send it. */
static bool asks_before_body(const struct http_request *request) {
    return request->has_body && writes(request);
}

/* Adds a piece of the body; false if the client has sent far too much. */
static bool receive_body(struct http_request *request, const char *data, size_t size) {
    size_t max = request->server->max_body;
    request->body_seen += size;
    http_server_expect_body(request->server, request->client, size, request->due_ns);
    if (request->status == 0 && request->body_seen > max) {
        reject_too_large(request);
        http_body_drop(request);
    }
    if (request->status == 0 && writes(request)) {
        struct error err;
        int r = http_body_add(request, data, size, &err);
        if (r < 0) {
            reject_for_now(request, r, &err);
            http_body_drop(request);
        }
    }
    return request->body_seen <= BODY_PATIENCE * max;
}

/* ---- passwords ---- */

static void reply_unauthorized(struct http_request *request) {
    http_reply_text(request, MHD_HTTP_UNAUTHORIZED, "Unauthorized");
    http_add_header(request, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Basic realm=\"waap\"");
}

static void note_failure(struct http_request *request) {
    http_checks_note_failure(&request->server->checks, &request->client->address,
                             clock_monotonic_ns());
}

static void auth_run(struct worker_job *job) {
    struct http_request *request = CONTAINER_OF(job, struct http_request, auth_job);
    request->authorized = users_verify(request->auth_config->users, request->authorization);
}

static void check_next_password(struct http_server *server);

static void auth_done(struct worker_job *job) {
    struct http_request *request = CONTAINER_OF(job, struct http_request, auth_job);
    struct http_server *server = request->server;
    web_config_unref(TAKE(request->auth_config));
    if (request->authorized) {
        request->user = users_name(request->authorization);
        http_request_release(request);
    } else {
        note_failure(request);
        reply_unauthorized(request);
    }
    server->is_checking = false;
    check_next_password(server);
}

static void reply_unavailable(struct http_check *check) {
    struct http_request *request = CONTAINER_OF(check, struct http_request, check);
    web_config_unref(TAKE(request->auth_config));
    http_reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                    "%zu passwords are waiting to be checked, try again later",
                    request->server->checks.n_waiting);
}

static void check_next_password(struct http_server *server) {
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

/* Requests held here are not counted as scrapes: a client that guesses passwords cannot take the
 * places of scrapers. */
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
    hold(request, &server->n_checks);
    request->authorization = mem_strdup(authorization);
    request->auth_config = web_config_ref(server->web_config);
    check_next_password(server);
}

/* Lets a request in, rejects it, or holds it until a worker has checked its password. */
static void check_password(struct http_request *request) {
    struct http_server *server = request->server;
    struct users *users = server->web_config != NULL ? server->web_config->users : NULL;
    bool exempt = request->route != NULL && request->route->health && server->health_is_open;
    if (users == NULL || exempt) {
        return;
    }
    const char *authorization = http_header(request, MHD_HTTP_HEADER_AUTHORIZATION);
    enum users_verdict verdict = users_lookup(users, authorization);
    if (verdict == USERS_DENIED) {
        if (authorization != NULL) { /* browsers send a first request without a password */
            note_failure(request);
        }
        reply_unauthorized(request);
    } else if (verdict == USERS_UNKNOWN) {
        hold_for_check(request, authorization);
    } else {
        request->user = users_name(authorization);
    }
}

/* ---- heads that libmicrohttpd accepts and we reject ---- */

struct head_check {
    unsigned n_content_length;
    unsigned n_host;
    unsigned n_transfer_encoding;
    const char *transfer_encoding;
    bool has_bad_name;
};

static bool is_token(const char *text) {
    static const char allowed[] = "!#$%&'*+-.^_`|~0123456789"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return text[0] != '\0' && text[strspn(text, allowed)] == '\0';
}

static enum MHD_Result check_header(void *context, enum MHD_ValueKind kind, const char *name,
                                    const char *value) {
    (void)kind;
    struct head_check *check = context;
    check->n_content_length += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    check->n_host += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        check->n_transfer_encoding++;
        check->transfer_encoding = value;
    }
    check->has_bad_name |= !is_token(name);
    return MHD_YES;
}

/* What is wrong with the head, or NULL. libmicrohttpd 0.9.75 accepts all of these; behind a proxy
 * that interprets them differently, one request could be smuggled inside another. */
static const char *head_fault(const struct http_request *request, const char *version) {
    struct head_check check = {0};
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, check_header, &check);
    const char *length = http_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *encoding = check.transfer_encoding;
    bool is_chunked =
        check.n_transfer_encoding == 1 && encoding != NULL && strcasecmp(encoding, "chunked") == 0;
    bool needs_host = strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
    const struct {
        bool is_wrong;
        const char *text;
    } faults[] = {
        {check.has_bad_name, "invalid character in a header name"},
        {check.n_content_length > 1, "more than one Content-Length"},
        {check.n_content_length > 0 && check.n_transfer_encoding > 0,
         "both Content-Length and Transfer-Encoding"},
        {check.n_transfer_encoding > 0 && !is_chunked, "Transfer-Encoding is not just \"chunked\""},
        {needs_host && check.n_host == 0, "no Host"},
        {needs_host && check.n_host > 1, "more than one Host"},
        {length != NULL && (length[0] == '\0' || length[strspn(length, "0123456789")] != '\0'),
         "Content-Length is not a number"},
    };
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        if (faults[i].is_wrong) {
            return faults[i].text;
        }
    }
    return NULL;
}

/* ---- routing ---- */

/* The length of the path that the route matches; 0: none. */
static size_t match_route(const struct http_route *route, const char *telemetry_path,
                          const char *path) {
    const char *route_path = route->path != NULL ? route->path : telemetry_path;
    size_t len = strlen(route_path);
    bool matches = strncmp(route_path, path, len) == 0 &&
                   (path[len] == '\0' || (route->prefix && path[len] == '/'));
    return matches ? len : 0;
}

static const struct http_route *find_route(const struct http_server *server, const char *path) {
    const char *telemetry_path = settings_string(server->config->settings, "web.telemetry-path");
    const struct http_route *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < server->n_routes; i++) {
        size_t len = match_route(&server->routes[i], telemetry_path, path);
        if (len > longest) {
            found = &server->routes[i];
            longest = len;
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
    http_reply_text(request, MHD_HTTP_METHOD_NOT_ALLOWED, "%s accepts %s only", request->url.path,
                    buf_str(&allow));
    http_add_header(request, MHD_HTTP_HEADER_ALLOW, buf_str(&allow));
}

static void check_route(struct http_request *request) {
    if (request->route == NULL) {
        http_reply_text(request, MHD_HTTP_NOT_FOUND, "404: nothing here");
    } else if ((request->route->methods & request->method) == 0) {
        reply_method_not_allowed(request);
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

/* ---- the life of a request ---- */

static struct http_client *client_of(struct MHD_Connection *connection) {
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void *http_request_begin(void *context, const char *target, struct MHD_Connection *connection) {
    struct http_server *server = context;
    struct http_client *client = client_of(connection);
    http_request_end(client);
    struct http_request *request = mem_zalloc(1, sizeof(*request));
    client->request = request;
    request->context = server->context;
    request->server = server;
    request->connection = connection;
    request->client = client;
    request->target = mem_strdup(target);
    http_server_expect_head(server, client);
    return request;
}

bool http_rate_allow(int64_t *due_ns, struct web_config_rate_limit limit, int64_t now_ns) {
    if (limit.interval_ms == 0) {
        return true;
    }
    int64_t interval_ns = limit.interval_ms * CLOCK_NS_PER_MS;
    if (*due_ns > now_ns + (limit.burst - 1) * interval_ns) {
        return false;
    }
    *due_ns = (*due_ns > now_ns ? *due_ns : now_ns) + interval_ns;
    return true;
}

/* Health checks cost nothing, and a supervisor restarts us if they fail: they have no limit. */
static bool is_within_rate(struct http_request *request) {
    struct http_server *server = request->server;
    bool health = request->route != NULL && request->route->health;
    return health || server->web_config == NULL ||
           http_rate_allow(&server->rate_due_ns, server->web_config->rate_limit, request->start_ns);
}

/* Rejects what cannot be served, once the client is known, and decides what follows. A client that
 * may not write is rejected before its body: strangers could make us store one per connection. */
static void check_request(struct http_request *request) {
    const char *length = http_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    unsigned long long len = length != NULL ? strtoull(length, NULL, 10) : 0;
    bool discards_body = false;
    if (request->status == 0) {
        check_route(request);
    }
    if (request->status == 0 && asks_before_body(request)) {
        check_rights(request);
    }
    if (request->status == 0 && len > request->server->max_body) {
        reject_too_large(request);
    }
    struct error err;
    int r = request->status == 0 && writes(request) ? http_body_announce(request, len, &err) : 0;
    if (r < 0) {
        reject_for_now(request, r, &err);
        /* A client that sends its body at once would be cut off before it reads the reply. */
        discards_body = http_header(request, MHD_HTTP_HEADER_EXPECT) == NULL;
    }
    if (!request->has_body) {
        request->state = HTTP_REQUEST_COMPLETE;
    } else if (request->status == 0 || discards_body) {
        request->state = HTTP_REQUEST_BODY;
        request->due_ns = request->client->due_ns;
        http_server_expect_body(request->server, request->client, 0, request->due_ns);
    } else {
        request->state = HTTP_REQUEST_REJECTED;
    }
}

/* Finds the route, and rejects the request if it is invalid, too frequent or not authorized. */
static void check_client(struct http_request *request) {
    struct error error;
    if (http_url_parse(request->target, &request->url, &error) < 0) {
        http_reply_text(request, MHD_HTTP_BAD_REQUEST, "bad request: %s", error.text);
        return;
    }
    request->route = find_route(request->server, request->url.path);
    if (is_within_rate(request)) {
        check_password(request);
    } else {
        http_reply_text(request, MHD_HTTP_TOO_MANY_REQUESTS,
                        "rate limit of the web configuration reached, try again later");
    }
}

static void examine_head(struct http_request *request, const char *method, const char *version) {
    request->start_ns = clock_monotonic_ns();
    http_server_expect_progress(request->server, request->client);
    request->method = method_of(method);
    const char *fault = head_fault(request, version);
    if (fault != NULL) {
        request->state = HTTP_REQUEST_BROKEN;
        http_reply_text(request, MHD_HTTP_BAD_REQUEST, "bad request: %s", fault);
        return;
    }
    const char *length = http_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    request->has_body = http_header(request, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL ||
                        (length != NULL && strspn(length, "0") != strlen(length));
    if (!request->has_body || request->client->class == HTTP_CLIENT_IDLE) {
        request->client->class = HTTP_CLIENT_BUSY;
    }
    check_client(request);
    if (request->held_among != NULL) {
        request->state = HTTP_REQUEST_PASSWORD;
    } else {
        check_request(request);
    }
}

/* A connection that was opened under an earlier web configuration must connect again, with the
 * current certificates. The response may be shared, so the request gets the header:
 * libmicrohttpd honours it there, too. */
static void close_if_config_changed(const struct http_request *request) {
    if (request->client->web_config != request->server->web_config) {
        MHD_set_connection_value(request->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONNECTION,
                                 "close");
    }
}

static enum MHD_Result send_reply(struct http_request *request) {
    if (request->response == NULL) {
        return MHD_NO;
    }
    if (request->state == HTTP_REQUEST_BROKEN) {
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    close_if_config_changed(request);
    http_server_expect_progress(request->server, request->client);
    request->client->look_ns = INT64_MAX; /* it may close its side now and still read */
    return MHD_queue_response(request->connection, request->status, request->response);
}

static void handle(struct http_request *request) {
    request->client->class = HTTP_CLIENT_BUSY;
    if (request->status == 0 && request->server->is_shut) {
        http_reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "waap is stopping");
    }
    if (request->status == 0 && !asks_before_body(request)) {
        check_rights(request);
    }
    if (request->status == 0) {
        request->route->handle(request);
    }
}

/* Also true if it was resumed in this call: libmicrohttpd calls again then. */
static bool is_suspended(const struct http_request *request) {
    return MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_SUSPENDED)
               ->suspended == MHD_YES;
}

enum MHD_Result http_request_step(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request_slot) {
    (void)context;
    (void)request_slot;
    (void)url;
    struct http_request *request = client_of(connection)->request;
    switch (request->state) {
    case HTTP_REQUEST_STARTED:
        examine_head(request, method, version);
        break;
    case HTTP_REQUEST_PASSWORD:
        check_request(request);
        break;
    case HTTP_REQUEST_BODY:
        if (*upload_size > 0) {
            size_t size = *upload_size;
            *upload_size = 0;
            return receive_body(request, upload, size) ? MHD_YES : MHD_NO;
        }
        request->state = HTTP_REQUEST_COMPLETE;
        /* fall through */
    case HTTP_REQUEST_COMPLETE:
        handle(request);
        return request->status != 0 && !is_suspended(request) ? send_reply(request) : MHD_YES;
    case HTTP_REQUEST_REJECTED:
    case HTTP_REQUEST_BROKEN:
        break;
    }
    /* A reply before the body is read closes the connection. Otherwise the reply waits for the next
     * call, which keeps the connection open. */
    return request->state >= HTTP_REQUEST_REJECTED ? send_reply(request) : MHD_YES;
}

void http_request_completed(void *context, struct MHD_Connection *connection, void **request_slot,
                            enum MHD_RequestTerminationCode code) {
    (void)context;
    (void)code;
    *request_slot = NULL;
    http_request_end(client_of(connection));
}

void http_request_end(struct http_client *client) {
    struct http_request *request = TAKE(client->request);
    if (request == NULL) {
        return;
    }
    struct http_server *server = request->server;
    assert(request->held_among == NULL);
    client->due_ns = INT64_MAX;
    http_server_look_soon(server, client);
    http_sending_end(request);
    if (request->status != 0) {
        double seconds = (double)(clock_monotonic_ns() - request->start_ns) / 1e9;
        http_stats_note(server->stats, request->route != NULL ? request->route->name : "other",
                        request->status, seconds);
        http_gate_answered(&server->gate, client);
    }
    if (request->state == HTTP_REQUEST_BROKEN) {
        shutdown(client->fd, SHUT_RDWR);
    }
    if (request->owns_response && request->response != NULL) {
        MHD_destroy_response(request->response);
    }
    if (request->authorization != NULL) {
        explicit_bzero(request->authorization, strlen(request->authorization));
    }
    if (request->handler_state != NULL) {
        request->free_state(request->handler_state);
    }
    http_url_finish(&request->url);
    http_body_drop(request);
    free(request->authorization);
    free(request->user);
    free(request->target);
    free(request);
}
