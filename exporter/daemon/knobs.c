#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/json.h"
#include "exporter/core/list.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/daemon/daemon.h"
#include "exporter/daemon/handlers.h"
#include "exporter/daemon/listing.h"
#include "exporter/http/access.h"
#include "exporter/net/network.h"
#include "exporter/push/claim.h"
#include "exporter/settings/option.h"
#include "exporter/settings/suggest.h"

#define BASE "/api/v1/plugins"
#define PARAMS "/params"

/* ---- finding the plugin or knob of an address ---- */

struct found_knob {
    struct push_owner *owner;
    struct knobs_plugin *plugin; /* NULL: it has no knobs */
    struct knob *knob;           /* NULL: the plugin is meant */
};

/* Parameters of a request that waits for a change. */
static bool is_of_waiting(const char *parameter) {
    return strcmp(parameter, "wait") == 0 || strcmp(parameter, "version") == 0;
}

/* Names for an answer, sorted: of labels by which plugins of one name are chosen, as parameters of
 * the address, or of knobs. Those beyond can be used as well: they are just not named. */
enum { MAX_NAMES = 32, MAX_CHOICES = 16 };

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
        selected = is_of_waiting(parameter->name) ||
                   strcmp(parameter->value, value != NULL ? value : "") == 0;
    }
    return selected;
}

/* Whether the owner has the knob; `param` NULL: only the plugin is asked for. */
static bool has_knob(const struct daemon *daemon, struct push_owner *owner, const char *param,
                     struct found_knob *ret_found) {
    struct knobs_plugin *plugin = knobs_of(daemon->knobs, owner);
    struct knob *knob = plugin != NULL && param != NULL ? knobs_find(plugin, param) : NULL;
    *ret_found = (struct found_knob){.owner = owner, .plugin = plugin, .knob = knob};
    return param == NULL || knob != NULL;
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
    buf_printf(&text, "%s: several plugins have %s%s, choose one by ", plugin,
               param != NULL ? "the param " : "this name", param != NULL ? param : "");
    struct push_owner *owner = NULL;
    struct found_knob found;
    size_t n = 0;
    while (n <= MAX_CHOICES && (owner = push_store_next_owner(daemon->push_store, owner)) != NULL) {
        struct push_owner_view view = push_owner_view(daemon->push_store, owner);
        if (is_selected(request, &view, plugin) && has_knob(daemon, owner, param, &found)) {
            buf_add_str(&text, n == 0 ? "" : " or ");
            if (n++ == MAX_CHOICES) {
                buf_add_str(&text, "…");
            } else {
                add_choice(&text, &view, selectors);
            }
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
        if (is_of_waiting(name) || is_selector(request, plugin, name, &selectors)) {
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

/* Finds the one knob that matches, or the one plugin if `param` is NULL; false: there is none or
 * several, and the request has got a reply. */
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
        struct found_knob found;
        bool has = has_knob(daemon, owner, param, &found);
        add_candidate(&candidates, &view, found.plugin);
        if (has) {
            n_found++;
            add_selectors_of(&selectors, &view);
            *ret_found = found;
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

/* Whether requests reach the plugin: by a connection, or by requests over HTTP that wait for them,
 * for a minute each. */
static bool is_listening(const struct knobs_plugin *plugin) {
    const int64_t longest_ns = 70 * CLOCK_NS_PER_SEC;
    return plugin->links != NULL ||
           (plugin->polled_ns > 0 && clock_monotonic_ns() - plugin->polled_ns < longest_ns);
}

static void put_knob(struct buf *out, const struct knobs_plugin *plugin, const struct knob *knob) {
    json_open(out, NULL, '{');
    knob_spec_put(out, &knob->spec);
    put_value(out, "requested", &knob->requested, "requested_at", knob->requested_seconds);
    if (knob->requested.form != KNOB_ABSENT) {
        json_put_string(out, "requested_by", knob->requested_by);
    }
    put_value(out, "applied", &knob->applied, "applied_at", knob->applied_seconds);
    json_put_bool(out, "connected", is_listening(plugin));
    json_close(out, '}');
}

/* Of a plugin; NULL: it has none. */
static void put_knobs(struct buf *out, const struct knobs_plugin *plugin) {
    json_open(out, "params", '[');
    const struct knob *knob = plugin != NULL ? plugin->knobs : NULL;
    for (; knob != NULL; knob = knob->next) {
        put_knob(out, plugin, knob);
    }
    json_close(out, ']');
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
    put_knobs(out, knobs_of(daemon->knobs, owner));
    json_close(out, '}');
    return true;
}

static const struct http_listing_kind plugins = {
    .end = "]}\n",
    .is_meant = is_plugin,
    .add = put_plugin,
};

/* ---- waiting for a change ---- */

/* A request for the knobs of one plugin that is answered when they change, or in time. */
struct knobs_poll {
    struct http_request *request;
    char *plugin; /* its name */
    uint64_t owner_number;
    struct loop_timer timeout;
    struct knobs_poll *next;
};

/* `version` is what a client waits behind; 0 if the plugin has no knobs. */
static void reply_knobs(struct http_request *request, const struct knobs_plugin *plugin) {
    struct buf data CLEANUP_BUF = {0};
    json_open(&data, NULL, '{');
    json_put(&data, "version", "%" PRIu64, plugin != NULL ? plugin->version : 0);
    put_knobs(&data, plugin);
    json_close(&data, '}');
    http_json_reply(request, &data);
}

/* Takes the poll out of the daemon's list; returns its request. */
static struct http_request *end_poll(struct daemon *daemon, struct knobs_poll *poll) {
    struct http_request *request = poll->request;
    *LIST_LINK(&daemon->polls, poll, next) = poll->next;
    loop_timer_remove(daemon->loop, &poll->timeout);
    free(poll->plugin);
    free(poll);
    return request;
}

/* The plugin may have expired meanwhile. It is not searched by its name, as many may wait as long,
 * and others may have the name by now. */
static void poll_timeout(struct loop_timer *timer) {
    struct knobs_poll *poll = CONTAINER_OF(timer, struct knobs_poll, timeout);
    struct daemon *daemon = daemon_of(poll->request);
    uint64_t number = poll->owner_number;
    char *plugin CLEANUP_FREE = TAKE(poll->plugin);
    struct http_request *request = end_poll(daemon, poll);
    struct push_owner *owner = push_store_owner_after(daemon->push_store, number - 1);
    struct found_knob found;
    if (owner != NULL && push_owner_view(daemon->push_store, owner).number == number) {
        reply_knobs(request, knobs_of(daemon->knobs, owner));
    } else if (find_knob(request, plugin, NULL, &found)) {
        reply_knobs(request, found.plugin);
    }
}

static void knobs_changed(struct knobs_listener *listener, const struct knobs_plugin *plugin) {
    struct daemon *daemon = CONTAINER_OF(listener, struct daemon, knobs_listener);
    for (struct knobs_poll *poll = daemon->polls, *next; poll != NULL; poll = next) {
        next = poll->next;
        if (poll->owner_number == plugin->owner_number) {
            reply_knobs(end_poll(daemon, poll), plugin);
        }
    }
}

/* Where too many wait, the one that has waited longest is answered, of the same peer if it has one:
 * its client may have left, which nobody sees before the answer. */
static bool hold(struct daemon *daemon, struct http_request *request) {
    struct knobs_poll *oldest = NULL, *own = NULL;
    struct knobs_poll *poll = http_may_hold_poll(request) ? NULL : daemon->polls;
    for (; poll != NULL; poll = poll->next) {
        const struct in6_addr *address = &poll->request->client->address;
        own = network_is_same_peer(address, &request->client->address) ? poll : own;
        oldest = poll;
    }
    oldest = own != NULL ? own : oldest;
    if (oldest != NULL) {
        poll_timeout(&oldest->timeout);
    }
    return http_hold_poll(request);
}

void http_knobs_listen(struct daemon *daemon) {
    daemon->knobs_listener.changed = knobs_changed;
    knobs_listen(daemon->knobs, &daemon->knobs_listener);
}

void http_knobs_release(struct daemon *daemon) {
    while (daemon->polls != NULL) {
        http_json_fail(end_poll(daemon, daemon->polls), MHD_HTTP_SERVICE_UNAVAILABLE,
                       "waap is stopping");
    }
}

/* How long the client wants to wait; 0: not at all, or the version that it has is an old one. */
static int read_wait(const struct http_request *request, const struct knobs_plugin *plugin,
                     int64_t *ret_wait_ms, struct error *err) {
    static const struct option duration = {"wait", OPTION_DURATION, .max = 60 * 1000};
    const char *wait = http_url_parameter(&request->url, "wait");
    const char *version = http_url_parameter(&request->url, "version");
    char *end = NULL;
    uint64_t has = version != NULL ? strtoull(version, &end, 10) : 0;
    uint64_t now = plugin != NULL ? plugin->version : 0;
    *ret_wait_ms = 0;
    if (version != NULL && (version[0] < '0' || version[0] > '9' || *end != '\0')) {
        return error_set(err, -EINVAL, "version: expected that of an earlier answer, got \"%s\"",
                         version);
    }
    struct error why;
    if (wait != NULL && option_parse(&duration, wait, ret_wait_ms, &why) < 0) {
        return error_set(err, -EINVAL, "wait: %s", why.text);
    }
    *ret_wait_ms = version != NULL && has != now ? 0 : *ret_wait_ms;
    return 0;
}

static void handle_knobs(struct http_request *request, const char *plugin) {
    struct daemon *daemon = request->context;
    struct found_knob found;
    if (!find_knob(request, plugin, NULL, &found)) {
        return;
    }
    struct error err;
    int64_t wait_ms;
    /* A client that may not push is not the plugin. */
    if (found.plugin != NULL && http_url_parameter(&request->url, "wait") != NULL &&
        http_access_check(request, &err) == 0) {
        found.plugin->polled_ns = clock_monotonic_ns();
    }
    if (read_wait(request, found.plugin, &wait_ms, &err) < 0) {
        http_json_fail(request, MHD_HTTP_BAD_REQUEST, err.text);
    } else if (wait_ms == 0) {
        reply_knobs(request, found.plugin);
    } else if (hold(daemon, request)) {
        struct knobs_poll *poll = mem_alloc(sizeof(*poll));
        *poll = (struct knobs_poll){
            .request = request,
            .plugin = mem_strdup(plugin),
            .owner_number = push_owner_view(daemon->push_store, found.owner).number,
            .timeout = {.due_ns = clock_monotonic_ns() + wait_ms * CLOCK_NS_PER_MS,
                        .fire = poll_timeout},
            .next = daemon->polls,
        };
        loop_timer_add(daemon->loop, &poll->timeout);
        daemon->polls = poll;
    }
}

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
             is_listening(found->plugin) ? "" : ", kept until the plugin is back");
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
    if (!find_knob(request, plugin, param, &found) ||
        (request->method == HTTP_PUT && !turn(request, &found))) {
        return;
    }
    struct buf data CLEANUP_BUF = {0};
    put_knob(&data, found.plugin, found.knob);
    http_json_reply(request, &data);
}

static void handle_plugin(struct http_request *request, const char *plugin) {
    struct found_knob found;
    if (find_knob(request, plugin, NULL, &found)) {
        struct buf data CLEANUP_BUF = {0};
        put_plugin(request->context, found.owner, NULL, &data);
        http_json_reply(request, &data);
    }
}

/* The name of a plugin may have slashes, that of a param has none. */
void http_knobs_handle(struct http_request *request) {
    const char *name = request->url.path + strlen(BASE);
    if (request->method != HTTP_PUT && name[0] == '\0') {
        http_listing_reply(request, &plugins);
        return;
    }
    const char *last = strrchr(name, '/');
    size_t len = strlen(name), tail = strlen(PARAMS), n = last != NULL ? (size_t)(last - name) : 0;
    bool is_list = n > 1 && strcmp(last, PARAMS) == 0;
    bool is_knob = n > tail + 1 && last[1] != '\0' && memcmp(last - tail, PARAMS, tail) == 0;
    if (len < 2 || name[1] == '/' || name[len - 1] == '/' ||
        (request->method == HTTP_PUT && !is_knob)) {
        http_json_fail(request, MHD_HTTP_NOT_FOUND,
                       request->method == HTTP_PUT ? "expected " BASE "/{plugin}" PARAMS "/{param}"
                                                   : "expected " BASE ", " BASE
                                                     "/{plugin}, and " PARAMS " or " PARAMS
                                                     "/{param} behind it");
        return;
    }
    size_t plugin_len = is_knob ? n - tail : is_list ? n : len;
    char *plugin CLEANUP_FREE = mem_strndup(name + 1, plugin_len - 1);
    if (is_knob) {
        handle_knob(request, plugin, last + 1);
    } else if (is_list) {
        handle_knobs(request, plugin);
    } else {
        handle_plugin(request, plugin);
    }
}
