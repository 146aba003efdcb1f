#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "exporter/core/json.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/daemon/daemon.h"
#include "exporter/daemon/handlers.h"
#include "exporter/daemon/listing.h"
#include "exporter/http/access.h"
#include "exporter/net/network.h"
#include "exporter/push/claim.h"
#include "exporter/settings/suggest.h"

#define BASE "/api/v1/plugins"
#define PARAMS "/params/"

/* ---- finding the knob of an address ---- */

struct found_knob {
    struct push_owner *owner;
    struct knobs_plugin *plugin;
    struct knob *knob;
};

/* Names for an answer, sorted: of labels by which plugins of one name are chosen, as parameters of
 * the address, or of knobs. Those beyond can be used as well: they are just not named. */
enum { MAX_NAMES = 32 };

struct names {
    const char *at[MAX_NAMES];
    size_t n;
};

/* Labels that any plugin may have or lack. */
static const char *const usual[] = {"container", "job", "namespace", "pod"};

static void add_name(struct names *names, const char *name) {
    size_t at = 0;
    while (at < names->n && strcmp(names->at[at], name) < 0) {
        at++;
    }
    bool there = at < names->n && strcmp(names->at[at], name) == 0;
    if (there || names->n == MAX_NAMES) {
        return;
    }
    const char **place = &names->at[at];
    memmove(place + 1, place, (names->n - at) * sizeof(*place));
    *place = name;
    names->n++;
}

static void write_names(const struct names *names, struct buf *out) {
    for (size_t i = 0; i < names->n; i++) {
        buf_printf(out, "%s %s", i > 0 ? "," : "", names->at[i]);
    }
}

/* The plugins that match a request, and the names of their knobs. */
struct candidates {
    size_t n_plugins;
    size_t n_connections;
    struct names knobs;
};

static void add_candidate(struct candidates *candidates, const struct push_owner_view *view,
                          const struct knobs_plugin *plugin) {
    candidates->n_plugins++;
    candidates->n_connections += view->n_refs;
    for (const struct knob *i = plugin != NULL ? plugin->knobs : NULL; i != NULL; i = i->next) {
        add_name(&candidates->knobs, i->spec.name);
    }
}

static void add_selectors_of(struct names *selectors, const struct push_owner_view *view) {
    for (size_t i = 0; i < view->n_labels; i++) {
        if (strcmp(view->labels[i].name, "plugin") != 0) {
            add_name(selectors, view->labels[i].name);
        }
    }
}

static const char *label_of(const struct push_owner_view *view, const char *name) {
    return label_find(view->labels, view->n_labels, name);
}

/* Whether it is a plugin, not a group of a Pushgateway's client. */
static bool is_plugin(const struct push_owner_view *view) {
    return !view->group && label_of(view, "plugin") != NULL;
}

static bool is_named(const struct push_owner_view *view, const char *plugin) {
    return is_plugin(view) && strcmp(label_of(view, "plugin"), plugin) == 0;
}

/* A label that it lacks is chosen as an empty one. */
static bool is_selected(const struct http_request *request, const struct push_owner_view *view,
                        const char *plugin) {
    bool selected = is_named(view, plugin);
    for (size_t i = 0; selected && i < request->url.n_parameters; i++) {
        const struct http_parameter *parameter = &request->url.parameters[i];
        const char *value = label_of(view, parameter->name);
        selected = strcmp(parameter->value, value != NULL ? value : "") == 0;
    }
    return selected;
}

static struct knob *knob_of(const struct daemon *daemon, struct push_owner *owner,
                            const char *param, struct knobs_plugin **ret_plugin) {
    *ret_plugin = knobs_of(daemon->knobs, owner);
    return *ret_plugin != NULL ? knobs_find(*ret_plugin, param) : NULL;
}

/* A label distinguishes a plugin from the others even if it lacks it: "?job=". */
static void add_choice(struct buf *out, const struct push_owner_view *view,
                       const struct names *selectors) {
    for (size_t i = 0; i < selectors->n; i++) {
        const char *value = label_of(view, selectors->at[i]);
        buf_printf(out, "%c%s=%s", i == 0 ? '?' : '&', selectors->at[i],
                   value != NULL ? value : "");
    }
}

/* Several plugins have the knob: the reply names the labels that choose one. */
static void fail_ambiguous(struct http_request *request, const char *plugin, const char *param,
                           const struct names *selectors) {
    struct daemon *daemon = request->context;
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "%s: several plugins have the param %s, choose one by ", plugin, param);
    struct push_owner *owner = NULL;
    struct knobs_plugin *knobs;
    for (bool first = true; (owner = push_store_next_owner(daemon->push_store, owner)) != NULL;) {
        struct push_owner_view view = push_owner_view(daemon->push_store, owner);
        if (is_selected(request, &view, plugin) && knob_of(daemon, owner, param, &knobs) != NULL) {
            buf_add_str(&text, first ? "" : " or ");
            add_choice(&text, &view, selectors);
            first = false;
        }
    }
    http_json_fail(request, MHD_HTTP_CONFLICT, buf_str(&text));
}

static void add_likely_plugin(const struct push_store *store, const char *wanted, struct buf *out) {
    struct suggest suggest;
    suggest_init(&suggest, wanted);
    struct push_owner *owner = NULL;
    while ((owner = push_store_next_owner(store, owner)) != NULL) {
        struct push_owner_view view = push_owner_view(store, owner);
        if (is_plugin(&view)) {
            const char *name = label_of(&view, "plugin");
            suggest_offer(&suggest, name, strlen(name));
        }
    }
    suggest_write(&suggest, "", out);
}

/* A plugin that is away may have the knob: after a restart of the daemon it has yet to declare it.
 */
static void fail_absent(struct http_request *request, const char *plugin, const char *param,
                        const struct candidates *candidates) {
    struct buf text CLEANUP_BUF = {0};
    if (candidates->n_plugins == 0 && request->url.n_parameters > 0) {
        buf_printf(&text, "%s: no such plugin with these labels", plugin);
    } else if (candidates->n_plugins == 0) {
        buf_printf(&text, "%s: no such plugin", plugin);
        add_likely_plugin(daemon_of(request)->push_store, plugin, &text);
    } else {
        bool away = candidates->n_connections == 0;
        buf_printf(&text, "%s: has declared no param %s%s", plugin, param,
                   away ? " since the daemon started, and is not connected" : "");
        buf_add_str(&text, candidates->knobs.n > 0 ? "; known:" : "");
        write_names(&candidates->knobs, &text);
    }
    http_json_fail(request, MHD_HTTP_NOT_FOUND, buf_str(&text));
}

/* Whether the label can choose a plugin of that name; adds the labels that can. */
static bool is_selector(struct http_request *request, const char *plugin, const char *name,
                        struct names *selectors) {
    struct push_store *store = daemon_of(request)->push_store;
    bool known = false, any = false;
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        known = known || strcmp(usual[i], name) == 0;
        add_name(selectors, usual[i]);
    }
    struct push_owner *owner = NULL;
    while (!known && (owner = push_store_next_owner(store, owner)) != NULL) {
        struct push_owner_view view = push_owner_view(store, owner);
        if (is_named(&view, plugin)) {
            any = true;
            known = label_of(&view, name) != NULL;
            add_selectors_of(selectors, &view);
        }
    }
    return known || !any; /* an unknown plugin is reported later */
}

/* A mistyped label must not choose an arbitrary plugin. */
static bool check_parameters(struct http_request *request, const char *plugin) {
    for (size_t i = 0; i < request->url.n_parameters; i++) {
        const char *name = request->url.parameters[i].name;
        struct names selectors = {0};
        if (is_selector(request, plugin, name, &selectors)) {
            continue;
        }
        struct buf text CLEANUP_BUF = {0};
        buf_printf(&text, "%s: unknown parameter, a plugin %s is chosen by", name, plugin);
        write_names(&selectors, &text);
        http_json_fail(request, MHD_HTTP_BAD_REQUEST, buf_str(&text));
        return false;
    }
    return true;
}

/* Finds the one knob that matches; false: there is none or several, and the request has got a
 * reply. */
static bool find_knob(struct http_request *request, const char *plugin, const char *param,
                      struct found_knob *ret_found) {
    struct daemon *daemon = request->context;
    struct push_owner *owner = NULL;
    struct names selectors = {0};
    struct candidates candidates = {0};
    size_t n_found = 0;
    if (!check_parameters(request, plugin)) {
        return false;
    }
    while ((owner = push_store_next_owner(daemon->push_store, owner)) != NULL) {
        struct push_owner_view view = push_owner_view(daemon->push_store, owner);
        if (!is_selected(request, &view, plugin)) {
            continue;
        }
        struct knobs_plugin *knobs;
        struct knob *knob = knob_of(daemon, owner, param, &knobs);
        add_candidate(&candidates, &view, knobs);
        if (knob != NULL) {
            n_found++;
            add_selectors_of(&selectors, &view);
            *ret_found = (struct found_knob){.owner = owner, .plugin = knobs, .knob = knob};
        }
    }
    if (n_found > 1) {
        fail_ambiguous(request, plugin, param, &selectors);
    } else if (n_found == 0) {
        fail_absent(request, plugin, param, &candidates);
    }
    return n_found == 1;
}

/* ---- showing ---- */

static void put_value(struct buf *out, const char *key, const struct knob_value *value,
                      const char *time_key, double seconds) {
    knob_value_put(out, key, value);
    if (value->form != KNOB_ABSENT) {
        json_put(out, time_key, "%.3f", seconds);
    }
}

static void put_knob(struct buf *out, const struct knobs_plugin *plugin, const struct knob *knob) {
    json_open(out, NULL, '{');
    knob_spec_put(out, &knob->spec);
    put_value(out, "requested", &knob->requested, "requested_at", knob->requested_seconds);
    if (knob->requested.form != KNOB_ABSENT) {
        json_put_string(out, "requested_by", knob->requested_by);
    }
    put_value(out, "applied", &knob->applied, "applied_at", knob->applied_seconds);
    json_put_bool(out, "connected", plugin->links != NULL);
    json_close(out, '}');
}

static void put_peer(struct buf *out, const struct push_claim *claim) {
    struct buf name CLEANUP_BUF = {0};
    json_put_bool(out, "verified", claim != NULL && claim->kind >= PUSH_CLAIM_UID);
    if (claim != NULL) {
        push_claim_format(claim, &name);
        json_put_string(out, "peer", buf_str(&name));
    } else {
        json_put(out, "peer", "null");
    }
}

static bool put_plugin(struct daemon *daemon, struct push_owner *owner,
                       struct http_listing_item *item, struct buf *out) {
    (void)item;
    struct push_owner_view view = push_owner_view(daemon->push_store, owner);
    json_open(out, NULL, '{');
    json_put_string(out, "plugin", label_of(&view, "plugin"));
    json_open(out, "labels", '{');
    for (size_t i = 0; i < view.n_labels; i++) {
        json_put_string(out, view.labels[i].name, view.labels[i].value);
    }
    json_close(out, '}');
    json_put(out, "connections", "%zu", view.n_refs);
    put_peer(out, push_claim_of(owner));
    json_put(out, "series", "%zu", view.n_series);
    json_put(out, "seen_at", "%.3f", view.seen_seconds);
    json_open(out, "params", '[');
    const struct knobs_plugin *plugin = knobs_of(daemon->knobs, owner);
    const struct knob *knob = plugin != NULL ? plugin->knobs : NULL;
    for (; knob != NULL; knob = knob->next) {
        put_knob(out, plugin, knob);
    }
    buf_add_str(out, "]}");
    return true;
}

static const struct http_listing_kind plugins = {
    .end = "]}\n",
    .is_meant = is_plugin,
    .add = put_plugin,
};

/* ---- setting it ---- */

/* The requester, for the log and the record: "uid 0", "10.1.2.3", "alice@10.1.2.3". */
static void add_requester(const struct http_request *request, struct buf *out) {
    struct ucred credentials;
    socklen_t len = sizeof(credentials);
    if (request->user != NULL) {
        buf_printf(out, "%s@", request->user);
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

/* {"value": 480}; null restores the default. */
static int read_request(struct http_request *request, struct knob_value *ret_value,
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
        r = knob_value_read(&json, ret_value, err);
        if (r < 0) {
            return r;
        }
    }
    if (r == 0 && (!found || !json_at_end(&json))) {
        return error_set(err, -EINVAL, "expected {\"value\": …} and nothing else");
    }
    return r;
}

static void format_requested(const struct knob *knob, struct buf *out) {
    if (knob->requested.form == KNOB_ABSENT) {
        buf_add_str(out, "the default");
    } else {
        knob_value_format(&knob->requested, out);
    }
}

/* Logs the change, with the labels that distinguish plugins of one name. */
static void record(const struct http_request *request, const struct found_knob *found,
                   const struct buf *before, const char *requester) {
    struct push_owner_view view = push_owner_view(daemon_of(request)->push_store, found->owner);
    struct buf after CLEANUP_BUF = {0};
    format_requested(found->knob, &after);
    log_info("knobs: %s: %s: from %s to %s, requested by %s%s", view.name, found->knob->spec.name,
             buf_str(before), buf_str(&after), requester,
             found->plugin->links != NULL ? "" : ", kept until the plugin is back");
}

/* False: the request has got a reply. */
static bool turn(struct http_request *request, const struct found_knob *found) {
    struct knob_value value;
    struct error err;
    struct buf requester CLEANUP_BUF = {0}, before CLEANUP_BUF = {0};
    add_requester(request, &requester);
    format_requested(found->knob, &before);
    int r = read_request(request, &value, &err);
    r = r < 0 ? r
              : knobs_request(daemon_of(request)->knobs, found->owner, found->plugin, found->knob,
                              &value, buf_str(&requester), &err);
    if (r < 0) {
        http_json_fail(request, http_json_status(r), err.text);
        return false;
    }
    record(request, found, &before, buf_str(&requester));
    return true;
}

/* ---- the addresses ---- */

static void handle_knob(struct http_request *request, const char *plugin, const char *param) {
    struct found_knob found;
    if (request->method == HTTP_PUT && !http_access_may_write(request)) {
        return;
    }
    if (!find_knob(request, plugin, param, &found) ||
        (request->method == HTTP_PUT && !turn(request, &found))) {
        return;
    }
    struct buf data CLEANUP_BUF = {0};
    put_knob(&data, found.plugin, found.knob);
    http_json_reply(request, &data);
}

void http_knobs_handle(struct http_request *request) {
    const char *rest = request->url.path + strlen(BASE);
    if (request->method != HTTP_PUT && rest[0] == '\0') {
        http_listing_reply(request, &plugins);
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
    char *plugin CLEANUP_FREE = mem_strndup(rest + 1, len - tail - 1);
    handle_knob(request, plugin, last + 1);
}
