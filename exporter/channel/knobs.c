#include "exporter/channel/knobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/knob_note.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/push/claim.h"

struct knobs {
    struct push_store *store;
    struct knobs_listener *listener; /* NULL: none */
    uint64_t version;                /* of the last change */
    struct push_json *reader;        /* of notes */
    int64_t swept_ns;
    struct knobs_plugin *plugins; /* sorted by number */
    struct snapshot snapshot;     /* for its memory */
    struct exposition_renderer renderer;
};

enum { MAX_KNOBS = 64 /* of one plugin */ };

/* ---- one knob ---- */

static void knob_destroy(struct knob *knob) {
    knob_spec_finish(&knob->spec);
    knob_value_finish(&knob->requested);
    knob_value_finish(&knob->applied);
    labels_destroy(knob->requested_labels);
    labels_destroy(knob->applied_labels);
    free(knob->requested_by);
    free(knob);
}

/* Most bytes that such a knob takes, with the labels of both values; escaping doubles a text. */
static size_t knob_room(const struct knobs_plugin *plugin, const struct knob_spec *spec) {
    return sizeof(struct knob) + knob_spec_room(spec) + 4 * plugin->labels_size;
}

struct knob *knobs_find(const struct knobs_plugin *plugin, const char *name) {
    struct knob *knob = plugin->knobs;
    while (knob != NULL && strcmp(knob->spec.name, name) != 0) {
        knob = knob->next;
    }
    return knob;
}

static void knob_insert(struct knobs_plugin *plugin, struct knob *knob) {
    struct knob **link = &plugin->knobs;
    while (*link != NULL && strcmp((*link)->spec.name, knob->spec.name) < 0) {
        link = &(*link)->next;
    }
    knob->next = *link;
    *link = knob;
    plugin->n_knobs++;
}

static void knob_set_request(struct knob *knob, const struct knob_request *request) {
    knob_value_set(&knob->requested, &request->value);
    labels_destroy(TAKE(knob->requested_labels));
    knob->requested_seconds = request->seconds;
    free(knob->requested_by);
    knob->requested_by = mem_strdup(request->by);
}

/* ---- plugins ---- */

static void forget_knobs(struct knobs_plugin *plugin) {
    while (plugin->knobs != NULL) {
        struct knob *knob = plugin->knobs;
        plugin->knobs = knob->next;
        knob_destroy(knob);
    }
    plugin->n_knobs = 0;
    plugin->n_bytes = 0;
}

static void plugin_destroy(struct knobs_plugin *plugin) {
    forget_knobs(plugin);
    free(plugin->peer);
    free(plugin);
}

static uint64_t number_of(const struct knobs *knobs, const struct push_owner *owner) {
    return push_owner_view(knobs->store, owner).number;
}

/* Where the plugin of that number is, or belongs. */
static struct knobs_plugin **find_place(struct knobs *knobs, uint64_t number) {
    struct knobs_plugin **place = &knobs->plugins;
    while (*place != NULL && (*place)->owner_number < number) {
        place = &(*place)->next;
    }
    return place;
}

static struct knobs_plugin *plugin_at(struct knobs_plugin *const *place, uint64_t number) {
    return *place != NULL && (*place)->owner_number == number ? *place : NULL;
}

/* Drops the plugins from `place` on with lower numbers: their owners have expired. */
static void forget_below(struct knobs_plugin **place, uint64_t number) {
    while (*place != NULL && (*place)->owner_number < number) {
        struct knobs_plugin *plugin = *place;
        *place = plugin->next;
        plugin_destroy(plugin);
    }
}

/* Drops the plugins that are gone from the store. */
static void sweep(struct knobs *knobs) {
    struct knobs_plugin **place = &knobs->plugins;
    struct push_owner *owner = NULL;
    knobs->swept_ns = clock_monotonic_ns();
    while ((owner = push_store_next_owner(knobs->store, owner)) != NULL) {
        uint64_t number = number_of(knobs, owner);
        forget_below(place, number);
        place = plugin_at(place, number) != NULL ? &(*place)->next : place;
    }
    forget_below(place, UINT64_MAX);
}

/* Searching those that are gone takes long, so once a second is enough. */
static bool sweep_if_due(struct knobs *knobs) {
    bool is_due = clock_monotonic_ns() - knobs->swept_ns > CLOCK_NS_PER_SEC;
    if (is_due) {
        sweep(knobs);
    }
    return is_due;
}

static size_t labels_size(const struct knobs *knobs, const struct push_owner *owner) {
    struct push_owner_view view = push_owner_view(knobs->store, owner);
    size_t n = 0;
    for (size_t i = 0; i < view.n_labels; i++) {
        n += strlen(view.labels[i].name) + strlen(view.labels[i].value);
    }
    return n;
}

static struct knobs_plugin *add_plugin(const struct knobs *knobs, struct knobs_plugin **place,
                                       const struct push_owner *owner) {
    struct knobs_plugin *plugin = mem_zalloc(1, sizeof(*plugin));
    plugin->owner_number = number_of(knobs, owner);
    plugin->labels_size = labels_size(knobs, owner);
    plugin->next = *place;
    *place = plugin;
    return plugin;
}

static struct knobs_plugin *enter(struct knobs *knobs, const struct push_owner *owner) {
    uint64_t number = number_of(knobs, owner);
    struct knobs_plugin *plugin = plugin_at(find_place(knobs, number), number);
    if (plugin == NULL) {
        sweep_if_due(knobs);
        plugin = add_plugin(knobs, find_place(knobs, number), owner);
    }
    return plugin;
}

/* ---- declarations ---- */

/* Bytes of all knobs that the plugin's peer has declared under any plugin name. */
static size_t peer_bytes(const struct knobs *knobs, const struct knobs_plugin *plugin) {
    size_t n = 0;
    for (const struct knobs_plugin *p = knobs->plugins; p != NULL; p = p->next) {
        bool same = p == plugin ||
                    (p->peer != NULL && plugin->peer != NULL && strcmp(p->peer, plugin->peer) == 0);
        n += same ? p->n_bytes : 0;
    }
    return n;
}

static int check_room(struct knobs *knobs, const struct knobs_plugin *plugin,
                      const struct knob *before, const struct knob_spec *spec, struct error *err) {
    if (before == NULL && plugin->n_knobs >= MAX_KNOBS) {
        return error_set(err, -E2BIG, "%s: the plugin has %d params already", spec->name,
                         MAX_KNOBS);
    }
    size_t more = knob_room(plugin, spec);
    size_t less = before != NULL ? knob_room(plugin, &before->spec) : 0;
    size_t max = push_store_limits(knobs->store)->max_peer_bytes / 4;
    if (peer_bytes(knobs, plugin) - less + more <= max) {
        return 0;
    }
    /* Plugins that expired still count until then. */
    if (sweep_if_due(knobs) && peer_bytes(knobs, plugin) - less + more <= max) {
        return 0;
    }
    return error_set(err, -E2BIG,
                     "%s: the params of %s would take more than %zu bytes under all its names, a "
                     "quarter of push.max-size-per-peer",
                     spec->name, plugin->peer != NULL ? plugin->peer : "the plugin", max);
}

static int declare_knob(struct knobs *knobs, struct knobs_plugin *plugin,
                        const struct knob_spec *spec, struct knob **ret_knob, struct error *err) {
    struct knob *knob = knobs_find(plugin, spec->name);
    int r = check_room(knobs, plugin, knob, spec, err);
    if (r < 0) {
        return r;
    }
    if (knob == NULL) {
        knob = mem_zalloc(1, sizeof(*knob));
        knob->spec = knob_spec_copy(spec);
        knob_insert(plugin, knob);
    } else {
        plugin->n_bytes -= knob_room(plugin, &knob->spec);
        knob_spec_finish(&knob->spec);
        knob->spec = knob_spec_copy(spec);
    }
    plugin->n_bytes += knob_room(plugin, &knob->spec);
    knob_value_finish(&knob->requested);
    labels_destroy(TAKE(knob->requested_labels));
    labels_destroy(TAKE(knob->applied_labels));
    *ret_knob = knob;
    return 0;
}

/* Restores an earlier request if the knob still accepts it. */
static void recall_request(struct knobs *knobs, struct push_owner *owner, struct knob *knob) {
    struct knob_note note;
    if (!knob_note_find(knobs->store, owner, knob->spec.name, &note)) {
        return;
    }
    if (knob_check(&knob->spec, &note.request.value, NULL) == 0) {
        knob_set_request(knob, &note.request);
        /* If the daemon restarts before the plugin, the knob is shown as it is declared now. */
        if (!knob_note_declares(&note, &knob->spec)) {
            knob_note_keep(knobs->store, owner, &knob->spec, &note.request, NULL);
        }
    }
    knob_note_finish(&note);
}

/* Whether the peer that declared the knobs has lost the plugin's name to another peer. */
static bool is_taken_over(const struct knobs_plugin *plugin, const struct push_owner *owner) {
    const char *peer = push_claim_share(owner);
    return peer != NULL && plugin->peer != NULL && strcmp(plugin->peer, peer) != 0;
}

static void note_peer(struct knobs_plugin *plugin, const struct push_owner *owner) {
    const char *peer = push_claim_share(owner);
    if (peer != NULL && plugin->peer == NULL) {
        plugin->peer = mem_strdup(peer);
    }
}

/* Notes a change of the plugin's knobs. */
static void note_change(struct knobs *knobs, struct knobs_plugin *plugin) {
    plugin->version = ++knobs->version;
    if (knobs->listener != NULL) {
        knobs->listener->changed(knobs->listener, plugin);
    }
}

/* Disconnects the knobs from the peer that declared them. */
static void disconnect(struct knobs_plugin *plugin) {
    while (plugin->links != NULL) {
        knobs_leave(plugin->links);
    }
    free(TAKE(plugin->peer));
}

/* The series of knobs use these labels: an owner with one of them could fake another's values. */
static int check_labels(const struct knobs *knobs, const struct push_owner *owner,
                        struct error *err) {
    struct push_owner_view view = push_owner_view(knobs->store, owner);
    bool param = label_find(view.labels, view.n_labels, "param") != NULL;
    if (!param && label_find(view.labels, view.n_labels, "value") == NULL) {
        return 0;
    }
    return error_set(err, -EINVAL, "a plugin with a label \"%s\" cannot have params",
                     param ? "param" : "value");
}

int knobs_declare(struct knobs *knobs, struct knobs_link *link, struct push_owner *owner,
                  const struct knob_spec *spec, struct error *err) {
    int r = check_labels(knobs, owner, err);
    if (r < 0) {
        return r;
    }
    struct knobs_plugin *plugin =
        link != NULL && link->plugin != NULL ? link->plugin : enter(knobs, owner);
    bool is_other_peer = is_taken_over(plugin, owner);
    if (is_other_peer) {
        disconnect(plugin);
    }
    /* A plugin that connects again declares all its knobs; over HTTP each request adds some. */
    if (is_other_peer || (link != NULL && plugin->links == NULL)) {
        forget_knobs(plugin);
    }
    if (link != NULL && link->plugin == NULL) {
        link->plugin = plugin;
        link->next = plugin->links;
        plugin->links = link;
    }
    push_owner_linger(owner);
    note_peer(plugin, owner);
    struct knob *knob = NULL;
    r = declare_knob(knobs, plugin, spec, &knob, err);
    if (r < 0) {
        return r;
    }
    knob_value_set(&knob->applied, &spec->initial);
    knob->applied_seconds = clock_wall_seconds();
    recall_request(knobs, owner, knob);
    note_change(knobs, plugin);
    if (link != NULL && knob->requested.form != KNOB_ABSENT) {
        link->send(link, knob->spec.name, &knob->requested);
    }
    return 0;
}

int knobs_applied(struct knobs *knobs, struct knobs_plugin *plugin, const char *name,
                  const struct knob_value *value, struct error *err) {
    struct knob *knob = plugin != NULL ? knobs_find(plugin, name) : NULL;
    if (knob == NULL) {
        return error_set(err, -ENOENT, "%s: no such param was declared", name);
    }
    int r = knob_check(&knob->spec, value, err);
    if (r < 0) {
        return r;
    }
    bool is_new = !knob_value_equal(&knob->applied, value);
    knob_value_set(&knob->applied, value);
    labels_destroy(TAKE(knob->applied_labels));
    knob->applied_seconds = clock_wall_seconds();
    if (is_new) { /* a client that confirms after every answer would never wait */
        note_change(knobs, plugin);
    }
    return 0;
}

void knobs_leave(struct knobs_link *link) {
    struct knobs_plugin *plugin = TAKE(link->plugin);
    if (plugin == NULL) {
        return;
    }
    struct knobs_link **at = &plugin->links;
    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
}

/* ---- requests ---- */

/* Restores the knobs of one plugin. */
struct recall {
    struct knobs *knobs;
    const struct push_owner *owner;
    struct knobs_plugin **place; /* where the plugin belongs */
    struct knobs_plugin *plugin; /* NULL before the first knob */
};

static void recall_knob(const char *key, const char *text, void *context) {
    struct recall *recall = context;
    struct knob_note note;
    struct knob_spec spec;
    struct knob *knob = NULL;
    if (!knob_note_read(key, text, &note)) {
        return;
    }
    if (note.declaration != NULL && recall->plugin == NULL) {
        recall->plugin = add_plugin(recall->knobs, recall->place, recall->owner);
        note_peer(recall->plugin, recall->owner);
    }
    if (knob_note_spec(&note, recall->knobs->reader, &spec) &&
        knob_check(&spec, &note.request.value, NULL) == 0 &&
        declare_knob(recall->knobs, recall->plugin, &spec, &knob, NULL) == 0) {
        knob_set_request(knob, &note.request);
    }
    knob_note_finish(&note);
}

/* Restores the knobs with a request of a plugin that has not connected since the daemon started. */
static struct knobs_plugin *recall_plugin(struct knobs *knobs, struct knobs_plugin **place,
                                          const struct push_owner *owner) {
    struct recall recall = {.knobs = knobs, .owner = owner, .place = place};
    push_store_visit_notes(knobs->store, owner, recall_knob, &recall);
    return recall.plugin;
}

struct knobs_plugin *knobs_of(struct knobs *knobs, struct push_owner *owner) {
    struct push_owner_view view = push_owner_view(knobs->store, owner);
    struct knobs_plugin **place = find_place(knobs, view.number);
    struct knobs_plugin *plugin = plugin_at(place, view.number);
    if (plugin != NULL && is_taken_over(plugin, owner)) {
        return NULL;
    }
    /* A connected plugin declares its knobs itself. */
    bool is_away = view.n_refs == 0;
    return plugin != NULL || !is_away ? plugin : recall_plugin(knobs, place, owner);
}

int knobs_request(struct knobs *knobs, struct push_owner *owner, struct knobs_plugin *plugin,
                  struct knob *knob, const struct knob_value *value, const char *by,
                  struct error *err) {
    int r = value->form != KNOB_ABSENT ? knob_check(&knob->spec, value, err) : 0;
    if (r < 0) {
        return r;
    }
    const struct knob_request request = {
        .value = *value, .seconds = clock_wall_seconds(), .by = by};
    /* A request that cannot be kept is rejected: the plugin would lose it with its connection. */
    r = knob_note_keep(knobs->store, owner, &knob->spec, &request, err);
    if (r < 0) {
        return r;
    }
    knob_set_request(knob, &request);
    const struct knob_value *wanted =
        value->form != KNOB_ABSENT ? &knob->requested : &knob->spec.initial;
    for (struct knobs_link *link = plugin->links; link != NULL; link = link->next) {
        link->send(link, knob->spec.name, wanted);
    }
    note_change(knobs, plugin);
    return 0;
}

/* ---- what a page shows ---- */

const struct metric_desc knobs_applied_metric = {
    .name = "plugin_param",
    .help = "Value of a plugin's knob as the plugin has applied it.",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param",
};
const struct metric_desc knobs_requested_metric = {
    .name = "plugin_param_requested",
    .help = "Value that was asked of a plugin's knob; absent where the default holds.",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param",
};
const struct metric_desc knobs_applied_info_metric = {
    .name = "plugin_param_info",
    .help = "Text of a plugin's knob as the plugin has applied it.",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param, value",
};
const struct metric_desc knobs_requested_info_metric = {
    .name = "plugin_param_requested_info",
    .help = "Text that was asked of a plugin's knob; absent where the default holds.",
    .type = METRIC_GAUGE,
    .labels = "plugin, job, container, pod, namespace, param, value",
};

/* Those of the owner, and of the knob, which win. */
static struct labels *render_labels(const struct push_owner_view *owner, const char *name,
                                    const struct knob_value *value) {
    struct label *labels CLEANUP_FREE = mem_alloc((owner->n_labels + 2) * sizeof(*labels));
    size_t n = 0;
    label_insert(labels, &n, (struct label){"param", name});
    if (value->form == KNOB_TEXT) {
        label_insert(labels, &n, (struct label){"value", value->text});
    }
    for (size_t i = 0; i < owner->n_labels; i++) {
        label_insert(labels, &n, owner->labels[i]);
    }
    return labels_create(labels, n);
}

static void add_value(struct snapshot *out, const struct metric_desc *number,
                      const struct metric_desc *text, const struct knob_value *value,
                      const struct labels *labels) {
    if (value->form == KNOB_TEXT) {
        snapshot_add(out, text, labels, 1);
    } else if (value->form != KNOB_ABSENT) {
        snapshot_add(out, number, labels, value->number);
    }
}

static void add_knob(struct snapshot *out, const struct push_owner_view *owner, struct knob *knob) {
    if (knob->applied_labels == NULL) {
        knob->applied_labels = render_labels(owner, knob->spec.name, &knob->applied);
    }
    if (knob->requested_labels == NULL && knob->requested.form != KNOB_ABSENT) {
        knob->requested_labels = render_labels(owner, knob->spec.name, &knob->requested);
    }
    add_value(out, &knobs_applied_metric, &knobs_applied_info_metric, &knob->applied,
              knob->applied_labels);
    add_value(out, &knobs_requested_metric, &knobs_requested_info_metric, &knob->requested,
              knob->requested_labels);
}

/* Adds the knobs of one owner until it expires; returns the place of the next owner's. */
static struct knobs_plugin **add_owner(struct knobs *knobs, struct knobs_plugin **place,
                                       struct push_owner *owner) {
    struct push_owner_view view = push_owner_view(knobs->store, owner);
    forget_below(place, view.number);
    struct knobs_plugin *plugin = plugin_at(place, view.number);
    if (plugin == NULL && view.n_refs == 0 && !view.expired) {
        plugin = recall_plugin(knobs, place, owner);
    }
    if (plugin == NULL) {
        return place;
    }
    bool is_shown = !view.expired && !is_taken_over(plugin, owner);
    for (struct knob *knob = is_shown ? plugin->knobs : NULL; knob != NULL; knob = knob->next) {
        add_knob(&knobs->snapshot, &view, knob);
    }
    return &plugin->next;
}

struct exposition_part *knobs_part(struct knobs *knobs) {
    struct knobs_plugin **place = &knobs->plugins;
    struct push_owner *owner = NULL;
    snapshot_reset(&knobs->snapshot);
    while ((owner = push_store_next_owner(knobs->store, owner)) != NULL) {
        place = add_owner(knobs, place, owner);
    }
    forget_below(place, UINT64_MAX);
    return exposition_render(&knobs->renderer, &knobs->snapshot, NULL);
}

/* ---- life ---- */

struct knobs *knobs_create(struct push_store *store) {
    struct knobs *knobs = mem_zalloc(1, sizeof(*knobs));
    knobs->store = store;
    knobs->reader = push_json_create();
    knobs->version = (uint64_t)(clock_wall_seconds() * 1e6);
    return knobs;
}

void knobs_listen(struct knobs *knobs, struct knobs_listener *listener) {
    knobs->listener = listener;
}

void knobs_destroy(struct knobs *knobs) {
    if (knobs == NULL) {
        return;
    }
    forget_below(&knobs->plugins, UINT64_MAX);
    exposition_renderer_finish(&knobs->renderer);
    snapshot_finish(&knobs->snapshot);
    push_json_destroy(knobs->reader);
    free(knobs);
}
