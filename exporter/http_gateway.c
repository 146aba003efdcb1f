#include "exporter/http_gateway.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "exporter/core/gzip.h"
#include "exporter/core/option.h"
#include "exporter/daemon.h"
#include "exporter/gateway_body.h"
#include "exporter/gateway_path.h"
#include "exporter/http_access.h"
#include "exporter/http_json.h"
#include "exporter/push_match.h"
#include "exporter/push_store.h"

static const char path_prefix[] = "/metrics/";
static const char protobuf_type[] = "application/vnd.google.protobuf";

static unsigned status_of(int code) {
    switch (code) {
    case -E2BIG:
    case -EFBIG:
        return MHD_HTTP_CONTENT_TOO_LARGE;
    case -ENOMEM:
    case -ENOSPC:
        return MHD_HTTP_INSUFFICIENT_STORAGE;
    default:
        return MHD_HTTP_BAD_REQUEST;
    }
}

/* Answers a push that could not be read or applied. */
static void refuse(struct http_request *request, int code, const struct error *error) {
    http_reply_text(request, status_of(code), "%s", error->text);
}

/* ---- the body ---- */

/* Whether the body is families in protobuf; -EINVAL for another protobuf than we read. */
static int is_protobuf(const struct http_request *request, bool *ret_is, struct error *err) {
    const char *type = http_header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
    *ret_is = type != NULL && strncasecmp(type, protobuf_type, strlen(protobuf_type)) == 0;
    if (*ret_is && (strstr(type, "io.prometheus.client.MetricFamily") == NULL ||
                    strstr(type, "encoding=delimited") == NULL)) {
        return error_set(err, -EINVAL,
                         "protobuf must be proto=io.prometheus.client.MetricFamily; "
                         "encoding=delimited, got \"%s\"",
                         type);
    }
    return 0;
}

/* Undoes the compression, if any. */
static int unpack(struct http_request *request, struct error *err) {
    const char *encoding = http_header(request, MHD_HTTP_HEADER_CONTENT_ENCODING);
    if (encoding == NULL || encoding[0] == '\0' || strcasecmp(encoding, "identity") == 0) {
        return 0;
    }
    if (strcasecmp(encoding, "gzip") != 0) {
        return error_set(err, -EINVAL, "Content-Encoding \"%s\" is not understood, only gzip is",
                         encoding);
    }
    struct buf plain CLEANUP_BUF = {0};
    size_t max = (size_t)settings_int(request->daemon->config->settings, "web.max-body-size");
    int r = gzip_unpack(request->body.data, request->body.len, max, &plain, err);
    if (r == 0) {
        struct buf packed = request->body;
        request->body = plain;
        plain = packed;
    }
    return r;
}

static int read_body(struct http_request *request, struct gateway_body *body, struct error *err) {
    const struct push_limits *limits = push_store_limits(request->daemon->push_store);
    const struct exposition_limits bounds = {
        .max_samples = limits->max_owner_series * (limits->max_buckets + 3),
        .max_labels = limits->max_labels + 1, /* le or quantile */
        .max_name_len = limits->max_name_len,
        .max_value_len = limits->max_value_len,
    };
    bool protobuf;
    int r = unpack(request, err);
    if (r == 0) {
        r = is_protobuf(request, &protobuf, err);
    }
    if (r == 0) {
        struct buf *text = &request->body;
        r = protobuf ? gateway_protobuf_read(text->data, text->len, &bounds, body, err)
                     : gateway_text_read(text->data, text->len, &bounds, body, err);
    }
    return r;
}

/* ---- what goes beyond the Pushgateway ---- */

static int read_ttl(const char *text, int64_t *ret_ttl_ms, struct error *err) {
    static const struct option duration = {.type = OPTION_DURATION};
    int r = option_parse(&duration, text, ret_ttl_ms, err);
    return r < 0 ? error_set(err, r, "ttl: %s", err->text) : 0;
}

static int read_mode(const char *text, bool *ret_add, struct error *err) {
    *ret_add = strcmp(text, "add") == 0;
    if (!*ret_add && strcmp(text, "replace") != 0) {
        return error_set(err, -EINVAL, "mode: expected \"add\" or \"replace\", got \"%s\"", text);
    }
    return 0;
}

/* Applies the query to the updates; `*ret_mode` is what becomes of the group's other series. */
static int apply_query(const struct http_request *request, struct gateway_body *body,
                       enum push_mode *ret_mode, struct error *err) {
    int64_t ttl_ms = PUSH_TTL_DEFAULT;
    bool add = false;
    for (size_t i = 0; i < request->url.n_parameters; i++) {
        const struct http_parameter *parameter = &request->url.parameters[i];
        int r = -EINVAL;
        if (strcmp(parameter->name, "ttl") == 0) {
            r = read_ttl(parameter->value, &ttl_ms, err);
        } else if (strcmp(parameter->name, "mode") == 0) {
            r = read_mode(parameter->value, &add, err);
        } else {
            error_set(err, r, "unknown parameter \"%s\": mode and ttl are known", parameter->name);
        }
        if (r < 0) {
            return r;
        }
    }
    for (size_t i = 0; i < body->n_updates; i++) {
        struct push_update *update = &body->updates[i];
        update->ttl_ms = ttl_ms;
        if (add && (update->type == PUSH_COUNTER || update->type == PUSH_HISTOGRAM)) {
            update->op = PUSH_INC;
        }
    }
    if (add && request->method == HTTP_PUT) {
        return error_set(err, -EINVAL, "mode=add goes with POST: PUT replaces the whole group");
    }
    *ret_mode = request->method == HTTP_PUT ? PUSH_REPLACE_ALL
                : add                       ? PUSH_MERGE
                                            : PUSH_REPLACE_FAMILIES;
    return 0;
}

/* ---- groups ---- */

static struct push_identity identity_of(const struct gateway_path *path) {
    return (struct push_identity){
        .group = true, .labels = path->labels, .n_labels = path->n_labels};
}

/* Stores what was read; a push that fails here leaves its mark in push_failure_time_seconds. */
static int store(struct http_request *request, const struct gateway_path *path,
                 const struct gateway_body *body, enum push_mode mode, struct error *err) {
    struct push_store *push = request->daemon->push_store;
    struct push_identity identity = identity_of(path);
    struct push_owner *owner = NULL;
    int r = push_store_owner(push, &identity, &owner, err);
    if (r < 0) {
        return r;
    }
    struct push_batch batch = {
        .mode = mode, .updates = body->updates, .n_updates = body->n_updates};
    if (body->has_timestamps) {
        r = error_set(err, -EINVAL, "pushed metrics must not have timestamps");
        push_store_count_refused(push, r);
    } else {
        r = push_store_apply(push, owner, &batch, NULL, err);
    }
    if (r < 0) {
        push_owner_note_failure(push, owner);
    }
    push_owner_unref(push, owner);
    return r;
}

static void take_push(struct http_request *request, const struct gateway_path *path) {
    struct gateway_body body CLEANUP_GATEWAY_BODY = {0};
    struct error error;
    enum push_mode mode = PUSH_MERGE;
    int r = read_body(request, &body, &error);
    if (r == 0) {
        r = apply_query(request, &body, &mode, &error);
    }
    if (r == 0 && gateway_body_drop_labels(&body, path->labels, path->n_labels) < 0) {
        r = error_set(&error, -ENOMEM, "out of memory");
    }
    if (r < 0) {
        push_store_count_refused(request->daemon->push_store, r == -EINVAL ? -EBADMSG : r);
        refuse(request, r, &error);
        return;
    }
    r = store(request, path, &body, mode, &error);
    if (r < 0) {
        refuse(request, r, &error);
        return;
    }
    struct buf empty CLEANUP_BUF = {0};
    buf_add_str(&empty, "");
    http_reply_buf(request, MHD_HTTP_OK, "text/plain; charset=utf-8", &empty);
}

static void delete_group(struct http_request *request, const struct gateway_path *path) {
    struct push_identity identity = identity_of(path);
    struct push_owner *owner = push_store_find_owner(request->daemon->push_store, &identity);
    if (owner != NULL) {
        push_store_remove_owner(request->daemon->push_store, owner);
    }
    http_reply_text(request, MHD_HTTP_ACCEPTED, "deleted");
}

void http_gateway_push(struct http_request *request) {
    struct gateway_path path CLEANUP_GATEWAY_PATH = {0};
    struct error error;
    if (!http_access_may_write(request)) {
        return;
    }
    int r = gateway_path_parse(request->url.path + strlen(path_prefix), &path, &error);
    if (r < 0) {
        push_store_count_refused(request->daemon->push_store, -EBADMSG);
        refuse(request, r, &error);
    } else if (request->method == HTTP_DELETE) {
        delete_group(request, &path);
    } else {
        take_push(request, &path);
    }
}

void http_gateway_wipe(struct http_request *request) {
    if (!settings_bool(request->daemon->config->settings, "web.enable-admin-api")) {
        http_reply_text(request, MHD_HTTP_FORBIDDEN,
                        "wiping is not allowed: start with --web.enable-admin-api");
    } else if (http_access_may_write(request)) {
        push_store_wipe(request->daemon->push_store);
        http_reply_text(request, MHD_HTTP_ACCEPTED, "wiped");
    }
}

/* ---- deleting by selector ---- */

struct deletion {
    const struct push_store *store;
    const struct push_match *match;
};

static bool is_meant(const struct push_series_view *series, void *context) {
    const struct deletion *deletion = context;
    struct push_owner_view owner = push_owner_view(deletion->store, series->owner);
    return push_match_test(deletion->match, series->name, owner.labels, owner.n_labels,
                           series->labels, series->n_labels);
}

/* Reads all selectors before anything is deleted. */
static int read_selectors(const struct http_url *url, struct push_match **matches, size_t *ret_n,
                          struct error *err) {
    *ret_n = 0;
    for (size_t i = 0; i < url->n_parameters; i++) {
        const struct http_parameter *parameter = &url->parameters[i];
        if (strcmp(parameter->name, "match[]") != 0) {
            return error_set(err, -EINVAL, "unknown parameter \"%s\": match[] is known",
                             parameter->name);
        }
        int r = push_match_create(parameter->value, &matches[*ret_n], err);
        if (r < 0) {
            return r;
        }
        (*ret_n)++;
    }
    return *ret_n > 0 ? 0 : error_set(err, -EINVAL, "which series? say ?match[]=fps{plugin=\"x\"}");
}

void http_gateway_delete(struct http_request *request) {
    struct push_match *matches[HTTP_URL_MAX_PARAMETERS];
    struct error error;
    size_t n, n_deleted = 0;
    if (!http_access_may_write(request)) {
        return;
    }
    int r = read_selectors(&request->url, matches, &n, &error);
    for (size_t i = 0; i < n; i++) {
        struct push_store *push = request->daemon->push_store;
        struct deletion deletion = {.store = push, .match = matches[i]};
        n_deleted += r == 0 ? push_store_remove_if(push, is_meant, &deletion) : 0;
        push_match_destroy(matches[i]);
    }
    struct buf data CLEANUP_BUF = {0};
    if (r < 0) {
        http_json_fail(request, http_json_status(r), error.text);
    } else {
        buf_printf(&data, "{\"deleted\":%zu}", n_deleted);
        http_json_reply(request, &data);
    }
}
