#include "exporter/http_pages.h"

#include <string.h>

#include "exporter/daemon.h"
#include "exporter/version.h"

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

void http_pages_landing(struct http_request *request) {
    const struct daemon *daemon = request->daemon;
    struct buf page CLEANUP_BUF = {0};
    buf_add_str(
        &page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>waap</title>\n"
        "<meta name=\"viewport\" content=\"width=device-width\"><style>\n"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}\n"
        "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3em .8em .3em 0;"
        "border-bottom:1px solid #ddd;vertical-align:top}\n"
        ".ok{color:#080}.fai{color:#b00;font-weight:bold}.abs,.off,.not{color:#666}\n"
        ".demo{background:#fd6;padding:.5em 1em}\n"
        "</style></head><body>\n<h1>waap</h1>\n<p>Live profiler of this node and its plugins, ");
    buf_printf(&page, "version %s.</p>\n", VERSION_TEXT);
    if (daemon->demo != NULL) {
        buf_printf(&page, "<p class=\"demo\">Demo: %s.</p>\n", demo_notice(daemon->demo));
    }
    buf_add_str(&page, "<p><a href=\"");
    add_html(&page, settings_string(daemon->config->settings, "web.telemetry-path") + 1);
    buf_add_str(&page, "\">Metrics</a> &middot; <a href=\"-/healthy\">Health</a> &middot; "
                       "<a href=\"-/ready\">Readiness</a></p>\n<table><tr><th>Collector</th>"
                       "<th>State</th><th>Last took</th><th></th></tr>\n");
    for (size_t i = 0; i < engine_n_collectors(daemon->engine); i++) {
        struct engine_status status = engine_status(daemon->engine, i);
        add_collector(&page, &status);
    }
    buf_add_str(&page, "</table>\n</body></html>\n");
    http_reply_buf(request, MHD_HTTP_OK, "text/html; charset=utf-8", &page);
}
