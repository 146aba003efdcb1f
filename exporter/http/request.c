#include "exporter/http/request.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/http/json.h"
#include "exporter/http/server_private.h"
#include "exporter/net/network.h"

const char *http_header(const struct http_request *request, const char *name) {
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

bool http_has_room(const struct http_request *request, size_t n) {
    /* Bytes for a header beside its text, and for the head of an answer. */
    enum { PER_HEADER = 96, ANSWER_HEAD = 2048 };
    size_t pool_size = request->server->pool_size;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    int n_values = MHD_get_connection_values(
        request->connection, MHD_HEADER_KIND | MHD_COOKIE_KIND | MHD_GET_ARGUMENT_KIND, NULL, NULL);
    /* It reads into half of the pool, and into more only where the head does not fit. */
    return info != NULL && info->header_size <= pool_size / 4 &&
           pool_size / 2 + PER_HEADER * (size_t)n_values + n + ANSWER_HEAD <= pool_size;
}

void http_release(struct http_request *request) {
    if (!request->held) {
        return;
    }
    request->held = false;
    (*request->held_among)--;
    request->client->class = HTTP_CLIENT_BUSY;
    http_server_client_goes_on(request->server, request->client);
    MHD_resume_connection(request->connection);
    loop_hurry(request->server->loop); /* 0.9.75 wishes no turn for those it may go on with */
}

void http_hold_among(struct http_request *request, size_t *among) {
    request->held = true;
    request->suspended = true;
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

/* A scrape of the peer that has most of them held, where that is more than the share of `peer`;
 * looks at the youngest only, so that it takes little time however many there are. */
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

/* Answers if no request may be held any more. */
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
    http_hold_among(request, &server->n_scrapes);
    return true;
}

/* Whether one more may be held among those that cannot be cancelled: a peer has three quarters. */
static bool has_place(const struct http_request *request, const size_t *among, size_t max) {
    size_t n_own = n_held_of(request->server, among, &request->client->address);
    return *among < max && n_own < max - max / 4;
}

bool http_hold(struct http_request *request) {
    struct http_server *server = request->server;
    if (!is_open(request)) {
        return false;
    }
    if (!has_place(request, &server->n_tasks, server->max_tasks)) {
        reply_too_many(request, server->max_tasks);
        return false;
    }
    http_hold_among(request, &server->n_tasks);
    return true;
}

bool http_hold_upload(struct http_request *request) {
    struct http_server *server = request->server;
    if (server->is_closing || !has_place(request, &server->n_uploads, server->max_uploads)) {
        return false;
    }
    http_hold_among(request, &server->n_uploads);
    return true;
}

void http_reply_shared(struct http_request *request, unsigned status,
                       struct MHD_Response *response) {
    request->status = status;
    request->response = response;
    http_release(request);
}

void http_reply(struct http_request *request, unsigned status, struct MHD_Response *response) {
    request->owns_response = true;
    http_add_headers(request->server, response);
    http_reply_shared(request, status, response);
}

void http_add_headers(const struct http_server *server, struct MHD_Response *response) {
    size_t n = 0;
    const struct web_config_header *headers =
        server->web_config != NULL ? web_config_headers(server->web_config, &n) : NULL;
    for (size_t i = 0; i < n && response != NULL; i++) {
        MHD_add_response_header(response, headers[i].name, headers[i].value);
    }
}

void http_reply_buf(struct http_request *request, unsigned status, const char *content_type,
                    struct buf *body) {
    size_t len = body->len;
    char *data = buf_take(body);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        len, data != NULL ? data : (char[]){""},
        data != NULL ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_MUST_COPY);
    if (response == NULL) {
        free(data);
    } else {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
        request->own_sending.len = len;
        http_sending_begin(request, &request->own_sending);
    }
    http_reply(request, data != NULL ? status : MHD_HTTP_INTERNAL_SERVER_ERROR, response);
}

static bool is_api(const struct http_request *request) {
    static const char base[] = "/api/v1/";
    const char *path = request->url.path;
    return path != NULL && strncmp(path, base, strlen(base)) == 0;
}

void http_reply_text(struct http_request *request, unsigned status, const char *format, ...) {
    struct buf text CLEANUP_BUF = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    if (status >= MHD_HTTP_BAD_REQUEST && is_api(request)) {
        http_json_fail(request, status, buf_str(&text));
        return;
    }
    buf_add_char(&text, '\n');
    http_reply_buf(request, status, "text/plain; charset=utf-8", &text);
}
