#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/json.h"
#include "exporter/http/request.h"
#include "exporter/http/server.h"

/* Replies of handlers, and of the server itself. */

static const char json_type[] = "application/json";

static const struct {
    int code;
    unsigned status;
} statuses[] = {
    {-E2BIG, MHD_HTTP_CONTENT_TOO_LARGE},
    {-EACCES, MHD_HTTP_FORBIDDEN},
    {-EAGAIN, MHD_HTTP_TOO_MANY_REQUESTS},
    {-EBUSY, MHD_HTTP_SERVICE_UNAVAILABLE},
    {-EEXIST, MHD_HTTP_CONFLICT},
    {-EFBIG, MHD_HTTP_CONTENT_TOO_LARGE},
    {-ENOENT, MHD_HTTP_NOT_FOUND},
    {-ENOSPC, MHD_HTTP_INSUFFICIENT_STORAGE},
    {-EPROTONOSUPPORT, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE},
};

void http_request_release(struct http_request *request) {
    if (request->held_among == NULL) {
        return;
    }
    (*TAKE(request->held_among))--;
    request->client->class = HTTP_CLIENT_BUSY;
    http_server_expect_progress(request->server, request->client);
    MHD_resume_connection(request->connection);
    loop_hurry(request->server->loop); /* 0.9.75 asks for no turn after a resume */
}

void http_reply_shared(struct http_request *request, unsigned status,
                       struct MHD_Response *response) {
    request->status = status;
    request->response = response;
    http_request_release(request);
}

void http_reply(struct http_request *request, unsigned status, struct MHD_Response *response) {
    request->owns_response = true;
    http_add_headers(request->server, response);
    http_reply_shared(request, status, response);
}

void http_add_headers(const struct http_server *server, struct MHD_Response *response) {
    const struct web_config *config = server->web_config;
    for (size_t i = 0; config != NULL && i < config->n_headers && response != NULL; i++) {
        MHD_add_response_header(response, config->headers[i].name, config->headers[i].value);
    }
}

void http_add_header(struct http_request *request, const char *name, const char *value) {
    if (request->response != NULL) {
        MHD_add_response_header(request->response, name, value);
    }
}

void http_reply_buf(struct http_request *request, unsigned status, const char *content_type,
                    struct buf *body) {
    size_t len = body->len;
    char *data = buf_take(body);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, data, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(data);
    } else {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
        request->own_sending.len = len;
        http_sending_begin(request, &request->own_sending);
    }
    http_reply(request, status, response);
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

unsigned http_json_status(int code) {
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        if (statuses[i].code == code) {
            return statuses[i].status;
        }
    }
    return MHD_HTTP_BAD_REQUEST;
}

void http_json_reply(struct http_request *request, struct buf *data) {
    struct buf body CLEANUP_BUF = {0};
    buf_add_str(&body, "{\"status\":\"success\",\"data\":");
    buf_add(&body, data->data, data->len);
    buf_add_str(&body, "}\n");
    buf_finish(data);
    http_reply_buf(request, MHD_HTTP_OK, json_type, &body);
}

void http_json_fail(struct http_request *request, unsigned status, const char *text) {
    struct buf body CLEANUP_BUF = {0};
    buf_add_str(&body, "{\"status\":\"error\",\"error\":");
    json_add_string(&body, text);
    buf_add_str(&body, "}\n");
    http_reply_buf(request, status, json_type, &body);
}
