#include "exporter/daemon/knobs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "exporter/core/json.h"
#include "exporter/core/log.h"
#include "exporter/daemon/daemon.h"
#include "exporter/daemon/idle.h"
#include "exporter/daemon/knobs_find.h"
#include "exporter/daemon/listing.h"
#include "exporter/http/access.h"
#include "exporter/net/network.h"
#include "exporter/push/claim.h"

#define BASE "/api/v1/plugins"
#define PARAMS "/params/"

/* ---- showing ---- */

static void add_text(struct buf *out, const char *key, const char *text) {
    buf_printf(out, ",\"%s\":", key);
    if (text != NULL) {
        json_add_string(out, text);
    } else {
        buf_add_str(out, "null");
    }
}

static void add_value(struct buf *out, const char *key, const struct param_value *value,
                      double seconds) {
    buf_printf(out, ",\"%s\":", key);
    param_value_format(value, out);
    if (value->form != PARAM_ABSENT) {
        buf_printf(out, ",\"%s_at\":%.3f", key, seconds);
    }
}

static void add_knob(struct buf *out, const struct params_plugin *plugin,
                     const struct params_knob *knob) {
    buf_add_char(out, '{');
    param_spec_format(&knob->spec, out);
    add_value(out, "requested", &knob->requested, knob->requested_seconds);
    if (knob->requested.form != PARAM_ABSENT) {
        add_text(out, "requested_by", knob->requested_by);
    }
    add_value(out, "applied", &knob->applied, knob->applied_seconds);
    buf_printf(out, ",\"connected\":%s}", params_is_connected(plugin) ? "true" : "false");
}

static void add_labels(struct buf *out, const struct push_owner_view *view) {
    buf_add_char(out, '{');
    for (size_t i = 0; i < view->n_labels; i++) {
        buf_add_str(out, i > 0 ? "," : "");
        json_add_string(out, view->labels[i].name);
        buf_add_char(out, ':');
        json_add_string(out, view->labels[i].value);
    }
    buf_add_char(out, '}');
}

static bool add_plugin(struct daemon *daemon, struct push_owner *owner,
                       struct http_listing_item *item, struct buf *out) {
    (void)item;
    struct push_owner_view view = push_owner_view(daemon->push_store, owner);
    const char *claimant = push_claimant(daemon->push_store, owner);
    bool verified = claimant != NULL && (strcmp(claimant, "container") == 0 ||
                                         strncmp(claimant, "uid ", strlen("uid ")) == 0);
    buf_add_str(out, "{\"plugin\":");
    json_add_string(out, http_params_label(&view, "plugin"));
    buf_add_str(out, ",\"labels\":");
    add_labels(out, &view);
    buf_printf(out, ",\"connections\":%zu,\"verified\":%s", view.n_refs,
               verified ? "true" : "false");
    add_text(out, "peer", claimant);
    buf_printf(out, ",\"series\":%zu,\"seen_at\":%.3f,\"params\":[", view.n_series,
               view.seen_seconds);
    const struct params_plugin *plugin = params_of(daemon->params, owner);
    const struct params_knob *knob = plugin != NULL ? plugin->knobs : NULL;
    for (bool first = true; knob != NULL; knob = knob->next, first = false) {
        buf_add_str(out, first ? "" : ",");
        add_knob(out, plugin, knob);
    }
    buf_add_str(out, "]}");
    return true;
}

static void list(struct http_request *request) {
    static const struct http_listing_kind plugins = {
        .begin = "{\"status\":\"success\",\"data\":[",
        .end = "]}\n",
        .is_meant = http_params_is_plugin,
        .add = add_plugin,
    };
    http_listing_reply(request, &plugins);
}

/* ---- turning it ---- */

/* Who asks, for the log and the record: "uid 0", "10.1.2.3", "alice@10.1.2.3". */
static void add_asker(const struct http_request *request, struct buf *out) {
    struct ucred credentials;
    socklen_t len = sizeof(credentials);
    char *user CLEANUP_FREE = http_access_user(request);
    if (user != NULL) {
        buf_printf(out, "%s@", user);
    }
    if (request->client->is_unix) {
        if (getsockopt(request->client->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) == 0) {
            buf_printf(out, "uid %u", (unsigned)credentials.uid);
        }
        return;
    }
    char address[INET6_ADDRSTRLEN];
    network_format(&request->client->address, address);
    buf_add_str(out, address);
}

/* {"value": 480}; null: back to the default. */
static int read_request(struct http_request *request, struct param_value *ret_value,
                        struct error *err) {
    struct buf *body = &request->body;
    struct json json = body->len > 0 ? json_begin(body->data, body->len, 1) : (struct json){0};
    bool first = true;
    bool found = false;
    char *key;
    size_t len;
    int r;
    if (!json_take(&json, '{')) {
        return error_set(err, -EINVAL, "expected {\"value\": …}");
    }
    while ((r = json_next_key(&json, &first, &key, &len, err)) > 0) {
        if (found || strcmp(key, "value") != 0) {
            return json_fail(&json, err, "expected {\"value\": …}, got the key %s%s", key,
                             found ? " as well" : "");
        }
        found = true;
        r = param_value_read(&json, ret_value, err);
        if (r < 0) {
            return r;
        }
    }
    if (r == 0 && (!found || !json_at_end(&json))) {
        return error_set(err, -EINVAL, "expected {\"value\": …} and nothing else");
    }
    return r;
}

static void format_requested(const struct params_knob *knob, struct buf *out) {
    if (knob->requested.form == PARAM_ABSENT) {
        buf_add_str(out, "the default");
    } else {
        param_value_format(&knob->requested, out);
    }
}

/* For whoever asks later who did it: which one of several of that name, too. */
static void record(const struct http_request *request, const struct http_params_found *found,
                   const struct buf *before, const char *asker) {
    struct push_owner_view view = push_owner_view(daemon_of(request)->push_store, found->owner);
    struct buf after CLEANUP_BUF = {0};
    format_requested(found->knob, &after);
    log_info("params: %s: %s: from %s to %s, asked by %s%s", view.name, found->knob->spec.name,
             buf_str(before), buf_str(&after), asker,
             params_is_connected(found->plugin) ? "" : ", kept until the plugin is back");
}

/* False: the request has been answered. */
static bool turn(struct http_request *request, const struct http_params_found *found) {
    struct param_value value;
    struct error err;
    struct buf asker CLEANUP_BUF = {0}, before CLEANUP_BUF = {0};
    add_asker(request, &asker);
    format_requested(found->knob, &before);
    int r = read_request(request, &value, &err);
    r = r < 0 ? r
              : params_request(daemon_of(request)->params, found->owner, found->plugin, found->knob,
                               &value, buf_str(&asker), &err);
    if (r < 0) {
        http_json_fail(request, http_json_status(r), err.text);
        return false;
    }
    record(request, found, &before, buf_str(&asker));
    return true;
}

/* ---- the addresses ---- */

static void handle_knob(struct http_request *request, const char *plugin, const char *param) {
    struct http_params_found found;
    if (request->method == HTTP_PUT && !http_access_may_write(request)) {
        return;
    }
    if (!http_params_find(request, plugin, param, &found) ||
        (request->method == HTTP_PUT && !turn(request, &found))) {
        return;
    }
    struct buf data CLEANUP_BUF = {0};
    add_knob(&data, found.plugin, found.knob);
    http_json_reply(request, &data);
}

static void handle(struct http_request *request) {
    const char *rest = request->url.path + strlen(BASE);
    /* The name of a plugin may have slashes, that of a param has none. */
    const char *last = strrchr(rest, '/');
    size_t len = last != NULL ? (size_t)(last - rest) : 0;
    size_t tail = strlen(PARAMS) - 1;
    if (len <= tail + 1 || memcmp(last - tail, PARAMS, tail) != 0 || last[1] == '\0') {
        http_json_fail(request, MHD_HTTP_NOT_FOUND,
                       "expected " BASE " or " BASE "/{plugin}" PARAMS "{param}");
        return;
    }
    char *plugin CLEANUP_FREE = strndup(rest + 1, len - tail - 1);
    if (plugin == NULL) {
        http_json_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    handle_knob(request, plugin, last + 1);
}

void http_params_handle(struct http_request *request) {
    if (request->method == HTTP_PUT) {
        http_when_idle(request, handle);
    } else if (request->url.path[strlen(BASE)] == '\0') {
        list(request);
    } else {
        handle(request);
    }
}
