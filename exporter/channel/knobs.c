#include "exporter/channel/knobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/knobs_export.h"
#include "exporter/channel/knobs_knob.h"
#include "exporter/channel/knobs_note.h"
#include "exporter/core/clock.h"
#include "exporter/push/claim.h"

struct params_table {
    struct push_store *store;
    size_t max_knobs, max_peer_bytes;
    int64_t swept_ns;
    struct params_plugin *plugins;
};

enum { DEFAULT_MAX_KNOBS = 64, DEFAULT_MAX_PEER_BYTES = 4 << 20 };

/* ---- plugins ---- */

static struct labels *key_of(const struct params_table *params, const struct push_owner *owner) {
    struct push_owner_view view = push_owner_view(params->store, owner);
    return labels_create(view.labels, view.n_labels);
}

static void plugin_destroy(struct params_plugin *plugin) {
    while (plugin->knobs != NULL) {
        struct params_knob *knob = plugin->knobs;
        plugin->knobs = knob->next;
        params_knob_destroy(knob);
    }
    labels_destroy(plugin->key);
    free(plugin->peer);
    free(plugin);
}

static struct params_plugin *find(const struct params_table *params, const struct labels *key) {
    struct params_plugin *plugin = params->plugins;
    while (plugin != NULL && !labels_equal(plugin->key, key)) {
        plugin = plugin->next;
    }
    return plugin;
}

static struct params_plugin *find_plugin(const struct params_table *params,
                                         const struct push_owner *owner) {
    struct labels *key CLEANUP_LABELS = key_of(params, owner);
    return key != NULL ? find(params, key) : NULL;
}

/* Forgets the plugins that are gone from the store. */
static void sweep(struct params_table *params) {
    params->swept_ns = clock_monotonic_ns();
    for (struct params_plugin *plugin = params->plugins; plugin != NULL; plugin = plugin->next) {
        plugin->is_there = plugin->owner != NULL;
    }
    struct push_owner *owner = NULL;
    while ((owner = push_store_next_owner(params->store, owner)) != NULL) {
        struct labels *key CLEANUP_LABELS = key_of(params, owner);
        struct params_plugin *plugin = find(params, key);
        if (plugin != NULL) {
            plugin->is_there = true;
        }
    }
    for (struct params_plugin **link = &params->plugins; *link != NULL;) {
        struct params_plugin *plugin = *link;
        if (plugin->is_there) {
            link = &plugin->next;
        } else {
            *link = plugin->next;
            plugin_destroy(plugin);
        }
    }
}

static struct params_plugin *add_plugin(struct params_table *params,
                                        const struct push_owner *owner) {
    struct params_plugin *plugin = calloc(1, sizeof(*plugin));
    if (plugin == NULL) {
        return NULL;
    }
    plugin->key = key_of(params, owner);
    if (plugin->key == NULL) {
        free(plugin);
        return NULL;
    }
    plugin->next = params->plugins;
    params->plugins = plugin;
    return plugin;
}

static struct params_plugin *enter(struct params_table *params, const struct push_owner *owner) {
    struct params_plugin *plugin = find_plugin(params, owner);
    if (plugin == NULL) {
        sweep(params);
        plugin = add_plugin(params, owner);
    }
    return plugin;
}

/* ---- what plugins say ---- */

/* Bytes of all that the plugin's peer has declared, by whatever name. */
static size_t peer_bytes(const struct params_table *params, const struct params_plugin *plugin) {
    size_t n = 0;
    for (const struct params_plugin *p = params->plugins; p != NULL; p = p->next) {
        bool same = p == plugin ||
                    (p->peer != NULL && plugin->peer != NULL && strcmp(p->peer, plugin->peer) == 0);
        n += same ? p->n_bytes : 0;
    }
    return n;
}

static int check_room(struct params_table *params, const struct params_plugin *plugin,
                      const struct params_knob *before, const struct param_spec *spec,
                      struct error *err) {
    if (before == NULL && plugin->n_knobs >= params->max_knobs) {
        return error_set(err, -E2BIG, "%s: the plugin has %zu params already (push.max-params)",
                         spec->name, plugin->n_knobs);
    }
    size_t more = params_knob_room(spec),
           less = before != NULL ? params_knob_room(&before->spec) : 0;
    size_t max = params->max_peer_bytes;
    if (peer_bytes(params, plugin) - less + more <= max) {
        return 0;
    }
    /* Some may be long gone. Looking for them takes its time, and who is refused may insist. */
    if (clock_monotonic_ns() - params->swept_ns > CLOCK_NS_PER_SEC) {
        sweep(params);
        if (peer_bytes(params, plugin) - less + more <= max) {
            return 0;
        }
    }
    return error_set(err, -E2BIG,
                     "%s: the params of %s would take more than %zu bytes by all its names "
                     "(push.max-params-size-per-peer)",
                     spec->name, plugin->peer != NULL ? plugin->peer : "the plugin",
                     params->max_peer_bytes);
}

static int declare_knob(struct params_table *params, struct params_plugin *plugin,
                        const struct param_spec *spec, struct params_knob **ret_knob,
                        struct error *err) {
    struct params_knob *knob = params_find_knob(plugin, spec->name);
    struct param_spec copy;
    int r = check_room(params, plugin, knob, spec, err);
    r = r == 0 ? param_spec_copy(spec, &copy, err) : r;
    if (r < 0) {
        return r;
    }
    if (knob == NULL) {
        knob = calloc(1, sizeof(*knob));
        if (knob == NULL) {
            param_spec_finish(&copy);
            return error_set(err, -ENOMEM, "out of memory");
        }
        knob->spec = copy;
        params_knob_insert(plugin, knob);
    } else {
        plugin->n_bytes -= params_knob_room(&knob->spec);
        param_spec_finish(&knob->spec);
        knob->spec = copy;
    }
    plugin->n_bytes += params_knob_room(&knob->spec);
    param_value_finish(&knob->requested);
    *ret_knob = knob;
    return 0;
}

/* Takes up what was asked of the knob in an earlier life, unless it no longer fits. */
static void recall_request(struct params_table *params, struct push_owner *owner,
                           struct params_knob *knob) {
    struct params_note note;
    if (!params_note_find(params->store, owner, knob->spec.name, &note)) {
        return;
    }
    if (param_check(&knob->spec, &note.wish.value, NULL) == 0 &&
        params_knob_ask(knob, &note.wish)) {
        /* It is to be shown as it is declared now, should the daemon be back before the plugin. */
        if (!params_note_declares(&note, &knob->spec)) {
            params_note_keep(params->store, owner, &knob->spec, &note.wish, NULL);
        }
    }
    params_note_finish(&note);
}

/* A plugin that comes back declares anew what it has: what it no longer has is not shown. */
static void forget_knobs(struct params_table *params, struct params_plugin *plugin,
                         struct push_owner *owner) {
    while (plugin->knobs != NULL) {
        struct params_knob *knob = plugin->knobs;
        plugin->knobs = knob->next;
        param_value_finish(&knob->requested);
        param_value_finish(&knob->applied);
        params_export(params->store, owner, knob);
        params_knob_destroy(knob);
    }
    plugin->n_knobs = 0;
    plugin->n_bytes = 0;
    if (!plugin->cleared) {
        params_export_clear(params->store, owner);
        plugin->cleared = true;
    }
}

/* Whether somebody declared them who has lost the plugin's name to a better known one since. */
static bool is_anothers(const struct params_plugin *plugin, const struct push_owner *owner) {
    const char *peer = push_claim_share(owner);
    return peer != NULL && plugin->peer != NULL && strcmp(plugin->peer, peer) != 0;
}

/* When memory is out they are counted as nobody's. */
static void note_peer(struct params_plugin *plugin, const struct push_owner *owner) {
    const char *peer = push_claim_share(owner);
    if (peer != NULL && plugin->peer == NULL) {
        plugin->peer = strdup(peer);
    }
}

/* Its connections may not know it yet. */
static void turn_out(struct params_table *params, struct params_plugin *plugin) {
    while (plugin->links != NULL) {
        params_leave(params, plugin->links);
    }
    free(TAKE(plugin->peer));
}

int params_declare(struct params_table *params, struct params_link *link, struct push_owner *owner,
                   const struct param_spec *spec, struct error *err) {
    struct params_plugin *plugin = link->plugin != NULL ? link->plugin : enter(params, owner);
    if (plugin == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    if (is_anothers(plugin, owner)) {
        turn_out(params, plugin);
    }
    if (plugin->links == NULL) {
        forget_knobs(params, plugin, owner);
    }
    if (link->plugin == NULL) {
        link->plugin = plugin;
        link->next = plugin->links;
        plugin->links = link;
        plugin->owner = owner;
    }
    note_peer(plugin, owner);
    struct params_knob *knob = NULL;
    int r = declare_knob(params, plugin, spec, &knob, err);
    if (r < 0 || knob == NULL) {
        return r;
    }
    r = param_value_set(&knob->applied, &spec->initial, err);
    if (r < 0) {
        return r;
    }
    knob->applied_seconds = clock_wall_seconds();
    recall_request(params, owner, knob);
    if (knob->requested.form != PARAM_ABSENT) {
        link->send(link, knob->spec.name, &knob->requested);
    }
    params_export(params->store, owner, knob);
    return 0;
}

int params_applied(struct params_table *params, struct params_link *link, const char *name,
                   const struct param_value *value, struct error *err) {
    struct params_knob *knob = link->plugin != NULL ? params_find_knob(link->plugin, name) : NULL;
    if (knob == NULL) {
        return error_set(err, -ENOENT, "%s: no such param was declared", name);
    }
    int r = param_check(&knob->spec, value, err);
    r = r == 0 ? param_value_set(&knob->applied, value, err) : r;
    if (r < 0) {
        return r;
    }
    knob->applied_seconds = clock_wall_seconds();
    params_export(params->store, link->plugin->owner, knob);
    return 0;
}

void params_leave(struct params_table *params, struct params_link *link) {
    (void)params;
    struct params_plugin *plugin = TAKE(link->plugin);
    if (plugin == NULL) {
        return;
    }
    struct params_link **at = &plugin->links;
    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
    if (plugin->links == NULL) {
        plugin->owner = NULL;
    }
}

/* ---- what users say ---- */

/* The knobs of one plugin that are recalled. */
struct recall {
    struct params_table *params;
    struct params_plugin *plugin;
    struct push_json *reader;
};

static void recall_knob(struct params_note *note, void *context) {
    const struct recall *recall = context;
    struct param_spec spec;
    struct params_knob *knob = NULL;
    if (!params_note_spec(note, recall->reader, &spec) ||
        param_check(&spec, &note->wish.value, NULL) < 0 ||
        declare_knob(recall->params, recall->plugin, &spec, &knob, NULL) < 0 || knob == NULL) {
        return;
    }
    if (params_knob_ask(knob, &note->wish)) {
        param_value_set(&knob->shown_requested, &knob->requested, NULL); /* by the daemon before */
    }
}

static void count_note(struct params_note *note, void *context) {
    size_t *n = context;
    *n += note->declaration != NULL;
}

/* The plugin has not come back since the daemon has: what was asked of it is known all the same. */
static struct params_plugin *recall_plugin(struct params_table *params,
                                           const struct push_owner *owner) {
    size_t n = 0;
    params_note_visit(params->store, owner, count_note, &n);
    struct recall recall = {.params = params, .reader = n > 0 ? push_json_create() : NULL};
    if (recall.reader == NULL) {
        return NULL;
    }
    recall.plugin = add_plugin(params, owner);
    if (recall.plugin != NULL) {
        note_peer(recall.plugin, owner);
        params_note_visit(params->store, owner, recall_knob, &recall);
    }
    push_json_destroy(recall.reader);
    return recall.plugin;
}

struct params_plugin *params_of(struct params_table *params, struct push_owner *owner) {
    struct params_plugin *plugin = find_plugin(params, owner);
    if (plugin != NULL && is_anothers(plugin, owner)) {
        return NULL;
    }
    /* One that is connected says itself which knobs it has. */
    bool is_away = push_owner_view(params->store, owner).n_refs == 0;
    return plugin != NULL || !is_away ? plugin : recall_plugin(params, owner);
}

bool params_is_connected(const struct params_plugin *plugin) {
    return plugin->links != NULL;
}

int params_request(struct params_table *params, struct push_owner *owner,
                   struct params_plugin *plugin, struct params_knob *knob,
                   const struct param_value *value, const char *by, struct error *err) {
    int r = value->form != PARAM_ABSENT ? param_check(&knob->spec, value, err) : 0;
    if (r < 0) {
        return r;
    }
    struct params_wish wish = {.seconds = clock_wall_seconds(), .by = by};
    char *who CLEANUP_FREE = strdup(by);
    r = who == NULL ? error_set(err, -ENOMEM, "out of memory")
                    : param_value_set(&wish.value, value, err);
    /* What cannot be kept is not done: the plugin would lose it with its connection. */
    r = r < 0 ? r : params_note_keep(params->store, owner, &knob->spec, &wish, err);
    if (r < 0) {
        param_value_finish(&wish.value);
        return r;
    }
    param_value_finish(&knob->requested);
    knob->requested = wish.value;
    knob->requested_seconds = wish.seconds;
    free(knob->requested_by);
    knob->requested_by = TAKE(who);
    const struct param_value *wanted =
        value->form != PARAM_ABSENT ? &knob->requested : &knob->spec.initial;
    for (struct params_link *link = plugin->links; link != NULL; link = link->next) {
        link->send(link, knob->spec.name, wanted);
    }
    if (params_is_connected(plugin)) {
        params_export(params->store, owner, knob);
    } else {
        params_export_away(params->store, owner, knob);
    }
    return 0;
}

/* ---- life ---- */

struct params_table *params_create(struct push_store *store) {
    struct params_table *params = calloc(1, sizeof(*params));
    if (params != NULL) {
        params->store = store;
        params->max_knobs = DEFAULT_MAX_KNOBS;
        params->max_peer_bytes = DEFAULT_MAX_PEER_BYTES;
    }
    return params;
}

void params_limit(struct params_table *params, size_t max_knobs, size_t max_peer_bytes) {
    params->max_knobs = max_knobs;
    params->max_peer_bytes = max_peer_bytes;
}

void params_destroy(struct params_table *params) {
    if (params == NULL) {
        return;
    }
    while (params->plugins != NULL) {
        struct params_plugin *plugin = params->plugins;
        params->plugins = plugin->next;
        plugin_destroy(plugin);
    }
    free(params);
}
