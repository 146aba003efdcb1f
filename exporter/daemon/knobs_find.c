#include "exporter/daemon/knobs_find.h"

#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/daemon/daemon.h"
#include "exporter/settings/suggest.h"

/* Names for an answer, sorted: of labels by which plugins of one name are chosen, as parameters of
 * the address, or of knobs. Those beyond can be used as well: they are just not named. */
enum { MAX_NAMES = 32 };

struct names {
    const char *at[MAX_NAMES];
    size_t n;
};

/* What any plugin may have or lack. */
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

/* The plugins that are meant, and what knobs they have. */
struct candidates {
    size_t n_plugins;
    size_t n_connections;
    struct names knobs;
};

static void add_candidate(struct candidates *candidates, const struct push_owner_view *view,
                          const struct params_plugin *plugin) {
    candidates->n_plugins++;
    candidates->n_connections += view->n_refs;
    for (const struct params_knob *i = plugin != NULL ? plugin->knobs : NULL; i != NULL;
         i = i->next) {
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

const char *http_params_label(const struct push_owner_view *view, const char *name) {
    return label_find(view->labels, view->n_labels, name);
}

bool http_params_is_plugin(const struct push_owner_view *view) {
    return !view->group && http_params_label(view, "plugin") != NULL;
}

static bool is_named(const struct push_owner_view *view, const char *plugin) {
    return http_params_is_plugin(view) && strcmp(http_params_label(view, "plugin"), plugin) == 0;
}

/* A label that it lacks is chosen as an empty one. */
static bool is_selected(const struct http_request *request, const struct push_owner_view *view,
                        const char *plugin) {
    bool selected = is_named(view, plugin);
    for (size_t i = 0; selected && i < request->url.n_parameters; i++) {
        const struct http_parameter *parameter = &request->url.parameters[i];
        const char *value = http_params_label(view, parameter->name);
        selected = strcmp(parameter->value, value != NULL ? value : "") == 0;
    }
    return selected;
}

static struct params_knob *knob_of(const struct daemon *daemon, struct push_owner *owner,
                                   const char *param, struct params_plugin **ret_plugin) {
    *ret_plugin = params_of(daemon->params, owner);
    return *ret_plugin != NULL ? params_find_knob(*ret_plugin, param) : NULL;
}

/* By what one of them has the others are told apart, also by not having it: "?job=". */
static void add_choice(struct buf *out, const struct push_owner_view *view,
                       const struct names *selectors) {
    for (size_t i = 0; i < selectors->n; i++) {
        const char *value = http_params_label(view, selectors->at[i]);
        buf_printf(out, "%c%s=%s", i == 0 ? '?' : '&', selectors->at[i],
                   value != NULL ? value : "");
    }
}

/* Says that several have the knob, and how each is called. */
static void fail_ambiguous(struct http_request *request, const char *plugin, const char *param,
                           const struct names *selectors) {
    struct daemon *daemon = request->context;
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "%s: several plugins have the param %s, choose one by ", plugin, param);
    struct push_owner *owner = NULL;
    struct params_plugin *knobs;
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
        if (http_params_is_plugin(&view)) {
            const char *name = http_params_label(&view, "plugin");
            suggest_offer(&suggest, name, strlen(name));
        }
    }
    suggest_write(&suggest, "", out);
}

/* A plugin that is away may have the knob: after a restart of the daemon, it has yet to say so. */
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
                   away ? " since the daemon began, and is not connected" : "");
        buf_add_str(&text, candidates->knobs.n > 0 ? "; known:" : "");
        write_names(&candidates->knobs, &text);
    }
    http_json_fail(request, MHD_HTTP_NOT_FOUND, buf_str(&text));
}

/* Whether a plugin of that name can be chosen by it; adds by what else. */
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
            known = http_params_label(&view, name) != NULL;
            add_selectors_of(selectors, &view);
        }
    }
    return known || !any; /* that there is no such plugin is said later */
}

/* A mistyped label must not choose just anybody. */
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

bool http_params_find(struct http_request *request, const char *plugin, const char *param,
                      struct http_params_found *ret_found) {
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
        struct params_plugin *knobs;
        struct params_knob *knob = knob_of(daemon, owner, param, &knobs);
        add_candidate(&candidates, &view, knobs);
        if (knob != NULL) {
            n_found++;
            add_selectors_of(&selectors, &view);
            *ret_found = (struct http_params_found){.owner = owner, .plugin = knobs, .knob = knob};
        }
    }
    if (n_found > 1) {
        fail_ambiguous(request, plugin, param, &selectors);
    } else if (n_found == 0) {
        fail_absent(request, plugin, param, &candidates);
    }
    return n_found == 1;
}
