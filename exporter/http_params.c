#include "exporter/http_params.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "exporter/core/json.h"
#include "exporter/core/log.h"
#include "exporter/core/number.h"
#include "exporter/daemon.h"
#include "exporter/http_access.h"
#include "exporter/http_json.h"
#include "exporter/network.h"
#include "exporter/push_claim.h"

#define BASE "/api/v1/plugins"
#define PARAMS "/params/"

/* What tells plugins of one name apart, as parameters of the address. */
static const char *const selectors[] = {"container", "job", "namespace", "pod"};

/* ---- showing ---- */

static void add_text(struct buf *out, const char *key, const char *text) {
    buf_printf(out, ",\"%s\":", key);
    if (text != NULL) {
        json_add_string(out, text);
    } else {
        buf_add_str(out, "null");
    }
}

static void add_bound(struct buf *out, const char *key, double number) {
    if (isfinite(number)) {
        buf_printf(out, ",\"%s\":", key);
        param_value_format(&(struct param_value){.form = PARAM_NUMBER, .number = number}, out);
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

static void add_knob(struct buf *out, const struct params_knob *knob) {
    const struct param_spec *spec = &knob->spec;
    buf_add_str(out, "{\"param\":");
    json_add_string(out, spec->name);
    add_text(out, "type", param_type_name(spec->type));
    buf_add_str(out, ",\"default\":");
    param_value_format(&spec->initial, out);
    add_bound(out, "min", spec->min);
    add_bound(out, "max", spec->max);
    add_bound(out, "step", spec->step > 0 ? spec->step : INFINITY);
    for (size_t i = 0; i < spec->n_values; i++) {
        buf_add_str(out, i == 0 ? ",\"values\":[" : ",");
        json_add_string(out, spec->values[i]);
    }
    buf_add_str(out, spec->n_values > 0 ? "]" : "");
    if (spec->unit != NULL) {
        add_text(out, "unit", spec->unit);
    }
    if (spec->help != NULL) {
        add_text(out, "help", spec->help);
    }
    add_value(out, "requested", &knob->requested, knob->requested_seconds);
    if (knob->requested.form != PARAM_ABSENT) {
        add_text(out, "requested_by", knob->requested_by);
    }
    add_value(out, "applied", &knob->applied, knob->applied_seconds);
    buf_add_char(out, '}');
}

static const char *label_of(const struct push_owner_view *view, const char *name) {
    for (size_t i = 0; i < view->n_labels; i++) {
        if (strcmp(view->labels[i].name, name) == 0) {
            return view->labels[i].value;
        }
    }
    return NULL;
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

static void add_plugin(struct buf *out, struct daemon *daemon, struct push_owner *owner) {
    struct push_owner_view view = push_owner_view(daemon->push_store, owner);
    const char *claimant = push_claimant(daemon->push_store, owner);
    bool verified = claimant != NULL && (strcmp(claimant, "container") == 0 ||
                                         strncmp(claimant, "uid ", strlen("uid ")) == 0);
    buf_add_str(out, "{\"plugin\":");
    json_add_string(out, label_of(&view, "plugin"));
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
        add_knob(out, knob);
    }
    buf_add_str(out, "]}");
}

static bool is_plugin(const struct push_owner_view *view) {
    return !view->group && label_of(view, "plugin") != NULL;
}

static void list(struct http_request *request) {
    struct push_store *store = request->daemon->push_store;
    struct buf data CLEANUP_BUF = {0};
    buf_add_char(&data, '[');
    struct push_owner *owner = NULL;
    while ((owner = push_store_next_owner(store, owner)) != NULL) {
        struct push_owner_view view = push_owner_view(store, owner);
        if (is_plugin(&view)) {
            buf_add_str(&data, data.len > 1 ? "," : "");
            add_plugin(&data, request->daemon, owner);
        }
    }
    buf_add_char(&data, ']');
    http_json_reply(request, &data);
}

/* ---- finding one knob ---- */

struct found {
    struct push_owner *owner;
    struct params_plugin *plugin;
    struct params_knob *knob;
};

static bool is_selected(const struct http_request *request, const struct push_owner_view *view,
                        const char *plugin) {
    const char *name = label_of(view, "plugin");
    if (!is_plugin(view) || strcmp(name, plugin) != 0) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(selectors); i++) {
        const char *wanted = http_url_parameter(&request->url, selectors[i]);
        const char *value = label_of(view, selectors[i]);
        if (wanted != NULL && strcmp(wanted, value != NULL ? value : "") != 0) {
            return false;
        }
    }
    return true;
}

static struct params_knob *knob_of(const struct daemon *daemon, struct push_owner *owner,
                                   const char *param, struct params_plugin **ret_plugin) {
    *ret_plugin = params_of(daemon->params, owner);
    return *ret_plugin != NULL ? params_find_knob(*ret_plugin, param) : NULL;
}

/* A bit for each of `selectors` that the plugin has as a label. */
static unsigned labelled(const struct push_owner_view *view) {
    unsigned bits = 0;
    for (size_t i = 0; i < ARRAY_LEN(selectors); i++) {
        bits |= label_of(view, selectors[i]) != NULL ? 1U << i : 0;
    }
    return bits;
}

/* By what one of them has the others are told apart, also by not having it: "?job=". */
static void add_choice(struct buf *out, const struct push_owner_view *view, unsigned bits) {
    char before = '?';
    for (size_t i = 0; i < ARRAY_LEN(selectors); i++) {
        if ((bits & 1U << i) != 0) {
            const char *value = label_of(view, selectors[i]);
            buf_printf(out, "%c%s=%s", before, selectors[i], value != NULL ? value : "");
            before = '&';
        }
    }
}

/* Says that several have the knob, and how each is called. */
static void fail_ambiguous(struct http_request *request, const char *plugin, const char *param,
                           unsigned bits) {
    struct daemon *daemon = request->daemon;
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "%s: several plugins have the param %s, choose one by ", plugin, param);
    struct push_owner *owner = NULL;
    struct params_plugin *knobs;
    for (bool first = true; (owner = push_store_next_owner(daemon->push_store, owner)) != NULL;) {
        struct push_owner_view view = push_owner_view(daemon->push_store, owner);
        if (is_selected(request, &view, plugin) && knob_of(daemon, owner, param, &knobs) != NULL) {
            buf_add_str(&text, first ? "" : " or ");
            add_choice(&text, &view, bits);
            first = false;
        }
    }
    http_json_fail(request, MHD_HTTP_CONFLICT, buf_str(&text));
}

static void fail_absent(struct http_request *request, const char *plugin, const char *param,
                        bool has_plugin) {
    bool chosen = false;
    for (size_t i = 0; i < ARRAY_LEN(selectors); i++) {
        chosen = chosen || http_url_parameter(&request->url, selectors[i]) != NULL;
    }
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, has_plugin ? "%s: has declared no param %s" : "%s: no such plugin", plugin,
               param);
    buf_add_str(&text, !has_plugin && chosen ? " with these labels" : "");
    http_json_fail(request, MHD_HTTP_NOT_FOUND, buf_str(&text));
}

/* Finds the one knob that is meant; answers where there is none or several. */
static bool find(struct http_request *request, const char *plugin, const char *param,
                 struct found *ret_found) {
    struct daemon *daemon = request->daemon;
    struct push_owner *owner = NULL;
    size_t n_plugins = 0, n_found = 0;
    unsigned bits = 0;
    while ((owner = push_store_next_owner(daemon->push_store, owner)) != NULL) {
        struct push_owner_view view = push_owner_view(daemon->push_store, owner);
        if (!is_selected(request, &view, plugin)) {
            continue;
        }
        n_plugins++;
        struct params_plugin *knobs;
        struct params_knob *knob = knob_of(daemon, owner, param, &knobs);
        if (knob != NULL) {
            n_found++;
            bits |= labelled(&view);
            *ret_found = (struct found){.owner = owner, .plugin = knobs, .knob = knob};
        }
    }
    if (n_found > 1) {
        fail_ambiguous(request, plugin, param, bits);
    } else if (n_found == 0) {
        fail_absent(request, plugin, param, n_plugins > 0);
    }
    return n_found == 1;
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

static void record(const char *plugin, const struct params_knob *knob, const struct buf *before,
                   const char *asker) {
    struct buf after CLEANUP_BUF = {0};
    format_requested(knob, &after);
    log_info("params: %s: %s: from %s to %s, asked by %s", plugin, knob->spec.name, buf_str(before),
             buf_str(&after), asker);
}

/* False: the request has been answered. */
static bool turn(struct http_request *request, const char *plugin, const struct found *found) {
    struct param_value value;
    struct error err;
    struct buf asker CLEANUP_BUF = {0}, before CLEANUP_BUF = {0};
    add_asker(request, &asker);
    format_requested(found->knob, &before);
    int r = read_request(request, &value, &err);
    r = r < 0 ? r
              : params_request(request->daemon->params, found->owner, found->plugin, found->knob,
                               &value, buf_str(&asker), &err);
    if (r < 0) {
        http_json_fail(request, http_json_status(r), err.text);
        return false;
    }
    record(plugin, found->knob, &before, buf_str(&asker));
    return true;
}

/* ---- the addresses ---- */

static void handle_knob(struct http_request *request, const char *plugin, const char *param) {
    struct found found;
    if (request->method == HTTP_PUT && !http_access_may_write(request)) {
        return;
    }
    if (!find(request, plugin, param, &found) ||
        (request->method == HTTP_PUT && !turn(request, plugin, &found))) {
        return;
    }
    struct buf data CLEANUP_BUF = {0};
    add_knob(&data, found.knob);
    http_json_reply(request, &data);
}

void http_params_handle(struct http_request *request) {
    const char *rest = request->url.path + strlen(BASE);
    if (rest[0] == '\0' && request->method != HTTP_PUT) {
        list(request);
        return;
    }
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
