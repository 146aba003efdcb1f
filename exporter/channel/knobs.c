#include "exporter/channel/knobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/knobs_knob.h"
#include "exporter/channel/knobs_note.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/push/claim.h"

struct params_table {
    struct push_store *store;
    size_t max_knobs, max_peer_bytes;
    int64_t swept_ns;
    struct params_plugin *plugins; /* sorted by number */
    struct snapshot snapshot;      /* for its memory */
    struct exposition_renderer renderer;
};

enum { DEFAULT_MAX_KNOBS = 64, DEFAULT_MAX_PEER_BYTES = 4 << 20 };

/* ---- plugins ---- */

static void plugin_destroy(struct params_plugin *plugin) {
    while (plugin->knobs != NULL) {
        struct params_knob *knob = plugin->knobs;
        plugin->knobs = knob->next;
        params_knob_destroy(knob);
    }
    free(plugin->peer);
    free(plugin);
}

static uint64_t number_of(const struct params_table *params, const struct push_owner *owner) {
    return push_owner_view(params->store, owner).number;
}

/* Where the plugin of that number is, or belongs. */
static struct params_plugin **find_place(struct params_table *params, uint64_t number) {
    struct params_plugin **place = &params->plugins;
    while (*place != NULL && (*place)->owner_number < number) {
        place = &(*place)->next;
    }
    return place;
}

static struct params_plugin *plugin_at(struct params_plugin *const *place, uint64_t number) {
    return *place != NULL && (*place)->owner_number == number ? *place : NULL;
}

/* Forgets the plugins from `place` on whose numbers are below: their owners are gone from the
 * store. */
static void forget_below(struct params_plugin **place, uint64_t number) {
    while (*place != NULL && (*place)->owner_number < number) {
        struct params_plugin *plugin = *place;
        *place = plugin->next;
        plugin_destroy(plugin);
    }
}

/* Forgets the plugins that are gone from the store. */
static void sweep(struct params_table *params) {
    struct params_plugin **place = &params->plugins;
    struct push_owner *owner = NULL;
    params->swept_ns = clock_monotonic_ns();
    while ((owner = push_store_next_owner(params->store, owner)) != NULL) {
        uint64_t number = number_of(params, owner);
        forget_below(place, number);
        place = plugin_at(place, number) != NULL ? &(*place)->next : place;
    }
    forget_below(place, UINT64_MAX);
}

static struct params_plugin *add_plugin(struct params_plugin **place, uint64_t number) {
    struct params_plugin *plugin = mem_zalloc(1, sizeof(*plugin));
    plugin->owner_number = number;
    plugin->next = *place;
    *place = plugin;
    return plugin;
}

static struct params_plugin *enter(struct params_table *params, const struct push_owner *owner) {
    uint64_t number = number_of(params, owner);
    struct params_plugin *plugin = plugin_at(find_place(params, number), number);
    if (plugin == NULL) {
        sweep(params);
        plugin = add_plugin(find_place(params, number), number);
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
    labels_destroy(TAKE(knob->requested_labels));
    labels_destroy(TAKE(knob->applied_labels));
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
static void forget_knobs(struct params_plugin *plugin) {
    while (plugin->knobs != NULL) {
        struct params_knob *knob = plugin->knobs;
        plugin->knobs = knob->next;
        params_knob_destroy(knob);
    }
    plugin->n_knobs = 0;
    plugin->n_bytes = 0;
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
static void turn_out(struct params_plugin *plugin) {
    while (plugin->links != NULL) {
        params_leave(plugin->links);
    }
    free(TAKE(plugin->peer));
}

int params_declare(struct params_table *params, struct params_link *link, struct push_owner *owner,
                   const struct param_spec *spec, struct error *err) {
    struct params_plugin *plugin = link->plugin != NULL ? link->plugin : enter(params, owner);
    if (is_anothers(plugin, owner)) {
        turn_out(plugin);
    }
    if (plugin->links == NULL) {
        forget_knobs(plugin);
    }
    if (link->plugin == NULL) {
        link->plugin = plugin;
        link->next = plugin->links;
        plugin->links = link;
        push_owner_linger(owner);
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
    return 0;
}

int params_applied(struct params_link *link, const char *name, const struct param_value *value,
                   struct error *err) {
    struct params_knob *knob = link->plugin != NULL ? params_find_knob(link->plugin, name) : NULL;
    if (knob == NULL) {
        return error_set(err, -ENOENT, "%s: no such param was declared", name);
    }
    int r = param_check(&knob->spec, value, err);
    r = r == 0 ? param_value_set(&knob->applied, value, err) : r;
    if (r < 0) {
        return r;
    }
    labels_destroy(TAKE(knob->applied_labels));
    knob->applied_seconds = clock_wall_seconds();
    return 0;
}

void params_leave(struct params_link *link) {
    struct params_plugin *plugin = TAKE(link->plugin);
    if (plugin == NULL) {
        return;
    }
    struct params_link **at = &plugin->links;
    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
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
    params_knob_ask(knob, &note->wish);
}

static void count_note(struct params_note *note, void *context) {
    size_t *n = context;
    *n += note->declaration != NULL;
}

/* The plugin has not come back since the daemon has: what was asked of it is known all the same. */
static struct params_plugin *recall_plugin(struct params_table *params,
                                           struct params_plugin **place,
                                           const struct push_owner *owner) {
    size_t n = 0;
    params_note_visit(params->store, owner, count_note, &n);
    struct recall recall = {.params = params, .reader = n > 0 ? push_json_create() : NULL};
    if (recall.reader == NULL) {
        return NULL;
    }
    recall.plugin = add_plugin(place, number_of(params, owner));
    note_peer(recall.plugin, owner);
    params_note_visit(params->store, owner, recall_knob, &recall);
    push_json_destroy(recall.reader);
    return recall.plugin;
}

struct params_plugin *params_of(struct params_table *params, struct push_owner *owner) {
    struct push_owner_view view = push_owner_view(params->store, owner);
    struct params_plugin **place = find_place(params, view.number);
    struct params_plugin *plugin = plugin_at(place, view.number);
    if (plugin != NULL && is_anothers(plugin, owner)) {
        return NULL;
    }
    /* One that is connected says itself which knobs it has. */
    bool is_away = view.n_refs == 0;
    return plugin != NULL || !is_away ? plugin : recall_plugin(params, place, owner);
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
    labels_destroy(TAKE(knob->requested_labels));
    const struct param_value *wanted =
        value->form != PARAM_ABSENT ? &knob->requested : &knob->spec.initial;
    for (struct params_link *link = plugin->links; link != NULL; link = link->next) {
        link->send(link, knob->spec.name, wanted);
    }
    return 0;
}

/* ---- what a page shows ---- */

const struct metric_desc params_applied_metric = {
    .name = "plugin_param",
    .help = "Value of a plugin's knob as the plugin has applied it.",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param",
};
const struct metric_desc params_requested_metric = {
    .name = "plugin_param_requested",
    .help = "Value that was asked of a plugin's knob; absent where the default holds.",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param",
};
const struct metric_desc params_applied_info_metric = {
    .name = "plugin_param_info",
    .help = "Text of a plugin's knob as the plugin has applied it.",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param, value",
};
const struct metric_desc params_requested_info_metric = {
    .name = "plugin_param_requested_info",
    .help = "Text that was asked of a plugin's knob; absent where the default holds.",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param, value",
};

/* Adds a label to a sorted list; replaces another of that name. */
static size_t insert_label(struct label *labels, size_t n, struct label label) {
    size_t i = n;
    while (i > 0 && strcmp(labels[i - 1].name, label.name) > 0) {
        i--;
    }
    bool is_there = i > 0 && strcmp(labels[i - 1].name, label.name) == 0;
    if (is_there) {
        labels[i - 1] = label;
        return n;
    }
    memmove(&labels[i + 1], &labels[i], (n - i) * sizeof(*labels));
    labels[i] = label;
    return n + 1;
}

/* Those of the owner, and which knob it is. */
static struct labels *render_labels(const struct push_owner_view *owner, const char *name,
                                    const struct param_value *value) {
    struct label *labels CLEANUP_FREE = mem_alloc((owner->n_labels + 2) * sizeof(*labels));
    size_t n = owner->n_labels;
    memcpy(labels, owner->labels, n * sizeof(*labels));
    n = insert_label(labels, n, (struct label){"param", name});
    if (value->form == PARAM_TEXT) {
        n = insert_label(labels, n, (struct label){"value", value->text});
    }
    return labels_create(labels, n);
}

static void add_value(struct snapshot *out, const struct metric_desc *number,
                      const struct metric_desc *text, const struct param_value *value,
                      const struct labels *labels) {
    if (value->form == PARAM_TEXT) {
        snapshot_add(out, text, labels, 1);
    } else if (value->form != PARAM_ABSENT) {
        snapshot_add(out, number, labels, value->number);
    }
}

static void add_knob(struct snapshot *out, const struct push_owner_view *owner,
                     struct params_knob *knob) {
    if (knob->applied_labels == NULL) {
        knob->applied_labels = render_labels(owner, knob->spec.name, &knob->applied);
    }
    if (knob->requested_labels == NULL) {
        knob->requested_labels = render_labels(owner, knob->spec.name, &knob->requested);
    }
    add_value(out, &params_applied_metric, &params_applied_info_metric, &knob->applied,
              knob->applied_labels);
    add_value(out, &params_requested_metric, &params_requested_info_metric, &knob->requested,
              knob->requested_labels);
}

/* The knobs of one owner, those of a plugin that is away until it expires. Returns where those of
 * the next owner begin. */
static struct params_plugin **add_owner(struct params_table *params, struct params_plugin **place,
                                        struct push_owner *owner) {
    struct push_owner_view view = push_owner_view(params->store, owner);
    forget_below(place, view.number);
    struct params_plugin *plugin = plugin_at(place, view.number);
    if (plugin == NULL && view.n_refs == 0 && !view.expired) {
        plugin = recall_plugin(params, place, owner);
    }
    if (plugin == NULL) {
        return place;
    }
    bool is_shown = !view.expired && !is_anothers(plugin, owner);
    for (struct params_knob *knob = is_shown ? plugin->knobs : NULL; knob != NULL;
         knob = knob->next) {
        add_knob(&params->snapshot, &view, knob);
    }
    return &plugin->next;
}

struct exposition_part *params_part(struct params_table *params) {
    struct params_plugin **place = &params->plugins;
    struct push_owner *owner = NULL;
    snapshot_reset(&params->snapshot);
    while ((owner = push_store_next_owner(params->store, owner)) != NULL) {
        place = add_owner(params, place, owner);
    }
    forget_below(place, UINT64_MAX);
    return exposition_render(&params->renderer, &params->snapshot, NULL);
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
    exposition_renderer_finish(&params->renderer);
    snapshot_finish(&params->snapshot);
    free(params);
}
