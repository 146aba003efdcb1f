#include <string.h>

#include "exporter/core/gzip.h"
#include "exporter/core/version.h"
#include "exporter/daemon/daemon.h"
#include "exporter/daemon/handlers.h"
#include "exporter/http/access.h"
#include "exporter/live/live_files.h"
#include "exporter/metrics/exposition.h"

/* Only our own files and responses, and in no frame: labels may contain anything. */
#define CONTENT_POLICY                                                                             \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* ---- marks in the HTML ---- */

static void add_html(struct buf *out, const char *text) {
    for (const char *c = text; *c != '\0'; c++) {
        const char *entity = *c == '<'   ? "&lt;"
                             : *c == '>' ? "&gt;"
                             : *c == '&' ? "&amp;"
                             : *c == '"' ? "&quot;"
                                         : NULL;
        if (entity != NULL) {
            buf_add_str(out, entity);
        } else {
            buf_add_char(out, *c);
        }
    }
}

static const char *describe(const struct engine_status *status) {
    if (!status->enabled) {
        return "off";
    }
    if (status->state == ENGINE_WORKER_ABSENT) {
        return "absent";
    }
    if (!status->asked) {
        return "not scraped yet";
    }
    return status->healthy ? "ok" : "failing";
}

static void add_collector(struct buf *out, const struct engine_status *status) {
    buf_add_str(out, "<tr><td>");
    add_html(out, status->collector->name);
    buf_printf(out, "</td><td class=\"%.3s\">%s</td><td>", describe(status), describe(status));
    if (status->asked) {
        buf_printf(out, "%.3f ms", status->duration_seconds * 1e3);
    }
    buf_add_str(out, "</td><td>");
    add_html(out, status->error[0] != '\0' ? status->error : status->collector->help);
    buf_add_str(out, "</td></tr>\n");
}

static void add_collectors(struct buf *out, const struct http_request *request) {
    struct engine *engine = daemon_of(request)->engine;
    for (size_t i = 0; i < engine_n_collectors(engine); i++) {
        struct engine_status status = engine_status(engine, i);
        add_collector(out, &status);
    }
}

static void add_demo(struct buf *out, const struct http_request *request) {
    if (daemon_of(request)->demo != NULL) {
        buf_printf(out, "<p class=\"demo\">Demo: %s.</p>\n", demo_notice(daemon_of(request)->demo));
    }
}

static void add_metrics_path(struct buf *out, const struct http_request *request) {
    add_html(out, settings_string(daemon_of(request)->config->settings, "web.telemetry-path") + 1);
}

/* Why the viewer may not change knobs; nothing if that is allowed. */
static void add_refusal(struct buf *out, const struct http_request *request) {
    struct error err;
    if (http_access_check_viewer(request, &err) < 0) {
        add_html(out, err.text);
    }
}

static void add_version(struct buf *out, const struct http_request *request) {
    (void)request;
    add_html(out, VERSION_TEXT);
}

static const struct {
    const char *mark;
    void (*add)(struct buf *out, const struct http_request *request);
} marks[] = {
    {"@COLLECTORS@", add_collectors}, {"@DEMO@", add_demo},       {"@METRICS@", add_metrics_path},
    {"@REFUSAL@", add_refusal},       {"@VERSION@", add_version},
};

/* ---- handlers ---- */

/* Adds the text up to the next mark, or what a mark stands for; returns the end of it. */
static const char *add_next(struct buf *out, const struct http_request *request, const char *at) {
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        size_t len = strlen(marks[i].mark);
        if (strncmp(at, marks[i].mark, len) == 0) {
            marks[i].add(out, request);
            return at + len;
        }
    }
    size_t len = 1 + strcspn(at + 1, "@");
    buf_add(out, at, len);
    return at + len;
}

static void add_safety_headers(struct MHD_Response *response) {
    MHD_add_response_header(response, "Content-Security-Policy", CONTENT_POLICY);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
}

void http_live_page(struct http_request *request) {
    struct buf page CLEANUP_BUF = {0};
    for (const char *at = live_html; *at != '\0';) {
        at = add_next(&page, request, at);
    }
    http_reply_buf(request, MHD_HTTP_OK, "text/html; charset=utf-8", &page);
    if (request->response != NULL) {
        add_safety_headers(request->response);
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    }
}

static void reply_packed(struct http_request *request, const struct live_file *file) {
    struct MHD_Response *response = MHD_create_response_from_buffer(
        file->gzip_size, (void *)file->gzip, MHD_RESPMEM_PERSISTENT);
    if (response != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, file->content_type);
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    }
    http_reply(request, MHD_HTTP_OK, response);
}

static void reply_unpacked(struct http_request *request, const struct live_file *file) {
    struct buf text CLEANUP_BUF = {0};
    struct error err;
    if (gzip_unpack(file->gzip, file->gzip_size, file->size, &text, &err) < 0) {
        http_reply_text(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "%s", err.text);
        return;
    }
    http_reply_buf(request, MHD_HTTP_OK, file->content_type, &text);
}

void http_live_file(struct http_request *request) {
    const struct live_file *file =
        strcmp(request->url.path, live_css.path) == 0 ? &live_css : &live_js;
    if (exposition_accepts_gzip(http_header(request, MHD_HTTP_HEADER_ACCEPT_ENCODING))) {
        reply_packed(request, file);
    } else {
        reply_unpacked(request, file);
    }
    if (request->response != NULL) {
        add_safety_headers(request->response);
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
    }
    if (request->response != NULL && request->status == MHD_HTTP_OK) {
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_CACHE_CONTROL,
                                "max-age=31536000, immutable");
    }
}
