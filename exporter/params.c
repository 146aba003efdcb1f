#include "exporter/params.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/params_export.h"

struct params_table {
    struct push_store *store;
    size_t max_knobs;
    struct params_plugin *plugins;
};

enum { DEFAULT_MAX_KNOBS = 64 };

/* ---- values and knobs ---- */

static void value_finish(struct param_value *value) {
    free((char *)value->text);
    *value = (struct param_value){0};
}

/* Sets a value that is ours, by a copy. */
static int value_set(struct param_value *to, const struct param_value *from, struct error *err) {
    struct param_value value = *from;
    if (value.text != NULL) {
        value.text = strdup(value.text);
        if (value.text == NULL) {
            return error_set(err, -ENOMEM, "out of memory");
        }
    }
    value_finish(to);
    *to = value;
    return 0;
}

static void spec_finish(struct param_spec *spec) {
    for (size_t i = 0; i < spec->n_values; i++) {
        free((char *)spec->values[i]);
    }
    free((void *)spec->values);
    free((char *)spec->name);
    free((char *)spec->unit);
    free((char *)spec->help);
    value_finish(&spec->initial);
    *spec = (struct param_spec){0};
}

static bool copy_text(const char **text) {
    *text = *text != NULL ? strdup(*text) : NULL;
    return *text != NULL;
}

/* Makes a spec its own master. */
static int spec_copy(const struct param_spec *from, struct param_spec *ret_spec,
                     struct error *err) {
    struct param_spec spec = *from;
    spec.initial = (struct param_value){0};
    bool complete = copy_text(&spec.name);
    complete &= copy_text(&spec.unit) || from->unit == NULL;
    complete &= copy_text(&spec.help) || from->help == NULL;
    const char **values = calloc(from->n_values + 1, sizeof(*values));
    for (size_t i = 0; values != NULL && i < from->n_values; i++) {
        values[i] = strdup(from->values[i]);
        complete &= values[i] != NULL;
    }
    spec.values = values;
    spec.n_values = values != NULL ? from->n_values : 0;
    if (!complete || values == NULL || value_set(&spec.initial, &from->initial, err) < 0) {
        spec_finish(&spec);
        return error_set(err, -ENOMEM, "out of memory");
    }
    *ret_spec = spec;
    return 0;
}

static void knob_destroy(struct params_knob *knob) {
    spec_finish(&knob->spec);
    value_finish(&knob->requested);
    value_finish(&knob->applied);
    value_finish(&knob->shown_applied);
    value_finish(&knob->shown_requested);
    free(knob->requested_by);
    free(knob);
}

struct params_knob *params_find_knob(const struct params_plugin *plugin, const char *name) {
    struct params_knob *knob = plugin->knobs;
    while (knob != NULL && strcmp(knob->spec.name, name) != 0) {
        knob = knob->next;
    }
    return knob;
}

static void insert_knob(struct params_plugin *plugin, struct params_knob *knob) {
    struct params_knob **link = &plugin->knobs;
    while (*link != NULL && strcmp((*link)->spec.name, knob->spec.name) < 0) {
        link = &(*link)->next;
    }
    knob->next = *link;
    *link = knob;
    plugin->n_knobs++;
}

/* ---- plugins ---- */

static struct labels *key_of(const struct params_table *params, const struct push_owner *owner) {
    struct push_owner_view view = push_owner_view(params->store, owner);
    return labels_create(view.labels, view.n_labels);
}

static void plugin_destroy(struct params_plugin *plugin) {
    while (plugin->knobs != NULL) {
        struct params_knob *knob = plugin->knobs;
        plugin->knobs = knob->next;
        knob_destroy(knob);
    }
    labels_destroy(plugin->key);
    free(plugin);
}

static struct params_plugin *find(const struct params_table *params, const struct labels *key) {
    struct params_plugin *plugin = params->plugins;
    while (plugin != NULL && !labels_equal(plugin->key, key)) {
        plugin = plugin->next;
    }
    return plugin;
}

struct params_plugin *params_of(struct params_table *params, struct push_owner *owner) {
    struct labels *key CLEANUP_LABELS = key_of(params, owner);
    return key != NULL ? find(params, key) : NULL;
}

/* Forgets the plugins that are gone from the store. */
static void sweep(struct params_table *params) {
    for (struct params_plugin **link = &params->plugins; *link != NULL;) {
        struct params_plugin *plugin = *link;
        struct push_owner *owner = plugin->owner;
        for (struct push_owner *o = NULL;
             owner == NULL && (o = push_store_next_owner(params->store, o)) != NULL;) {
            struct labels *key CLEANUP_LABELS = key_of(params, o);
            owner = labels_equal(key, plugin->key) ? o : NULL;
        }
        if (owner == NULL) {
            *link = plugin->next;
            plugin_destroy(plugin);
        } else {
            link = &plugin->next;
        }
    }
}

static struct params_plugin *enter(struct params_table *params, struct push_owner *owner) {
    struct labels *key CLEANUP_LABELS = key_of(params, owner);
    struct params_plugin *plugin = key != NULL ? find(params, key) : NULL;
    if (plugin == NULL && key != NULL) {
        sweep(params);
        plugin = calloc(1, sizeof(*plugin));
    } else {
        return plugin;
    }
    if (plugin != NULL) {
        plugin->key = TAKE(key);
        plugin->next = params->plugins;
        params->plugins = plugin;
    }
    return plugin;
}

/* ---- requests, as the store keeps them: when and by whom, then on a line of its own the value
 * ----
 */

static void note_key(const char *name, struct buf *out) {
    buf_printf(out, "param %s", name);
}

static int keep_request(struct params_table *params, struct push_owner *owner,
                        const struct params_knob *knob, struct error *err) {
    struct buf key CLEANUP_BUF = {0}, text CLEANUP_BUF = {0};
    note_key(knob->spec.name, &key);
    buf_printf(&text, "%.3f %s\n", knob->requested_seconds, knob->requested_by);
    param_value_format(&knob->requested, &text);
    if (key.failed || text.failed) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    bool any = knob->requested.form != PARAM_ABSENT;
    return push_store_put_note(params->store, owner, buf_str(&key), any ? buf_str(&text) : NULL,
                               err);
}

static int parse_value(char *text, struct param_value *ret_value) {
    struct json json = json_begin(text, strlen(text), 1);
    return param_value_read(&json, ret_value, NULL);
}

/* Takes up what was asked of the knob in an earlier life, unless it no longer fits. */
static void recall_request(struct params_table *params, struct push_owner *owner,
                           struct params_knob *knob) {
    struct buf key CLEANUP_BUF = {0};
    note_key(knob->spec.name, &key);
    const char *note = push_store_note(params->store, owner, buf_str(&key));
    char *text CLEANUP_FREE = note != NULL ? strdup(note) : NULL;
    char *line_end = text != NULL ? strchr(text, '\n') : NULL;
    struct param_value value;
    char *by;
    if (line_end == NULL) {
        return;
    }
    *line_end = '\0';
    double seconds = strtod(text, &by);
    if (parse_value(line_end + 1, &value) == 0 && param_check(&knob->spec, &value, NULL) == 0 &&
        value_set(&knob->requested, &value, NULL) == 0) {
        knob->requested_seconds = seconds;
        free(knob->requested_by);
        knob->requested_by = strdup(by + strspn(by, " "));
    }
}

/* ---- what plugins say ---- */

static int declare_knob(struct params_table *params, struct params_plugin *plugin,
                        const struct param_spec *spec, struct params_knob **ret_knob,
                        struct error *err) {
    struct params_knob *knob = params_find_knob(plugin, spec->name);
    if (knob == NULL && plugin->n_knobs >= params->max_knobs) {
        return error_set(err, -E2BIG, "%s: the plugin has %zu params already (push.max-params)",
                         spec->name, plugin->n_knobs);
    }
    struct param_spec copy;
    int r = spec_copy(spec, &copy, err);
    if (r < 0) {
        return r;
    }
    if (knob == NULL) {
        knob = calloc(1, sizeof(*knob));
        if (knob == NULL) {
            spec_finish(&copy);
            return error_set(err, -ENOMEM, "out of memory");
        }
        knob->spec = copy;
        insert_knob(plugin, knob);
    } else {
        spec_finish(&knob->spec);
        knob->spec = copy;
    }
    value_finish(&knob->requested);
    *ret_knob = knob;
    return 0;
}

/* A plugin that comes back declares anew what it has: what it no longer has is not shown. */
static void forget_knobs(struct params_table *params, struct params_plugin *plugin,
                         struct push_owner *owner) {
    while (plugin->knobs != NULL) {
        struct params_knob *knob = plugin->knobs;
        plugin->knobs = knob->next;
        value_finish(&knob->requested);
        value_finish(&knob->applied);
        params_export(params->store, owner, knob);
        knob_destroy(knob);
    }
    plugin->n_knobs = 0;
    if (!plugin->cleared) {
        params_export_clear(params->store, owner);
        plugin->cleared = true;
    }
}

int params_declare(struct params_table *params, struct params_link *link, struct push_owner *owner,
                   const struct param_spec *spec, struct error *err) {
    struct params_plugin *plugin = link->plugin != NULL ? link->plugin : enter(params, owner);
    if (plugin == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
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
    struct params_knob *knob = NULL;
    int r = declare_knob(params, plugin, spec, &knob, err);
    if (r < 0 || knob == NULL) {
        return r;
    }
    r = value_set(&knob->applied, &spec->initial, err);
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
    r = r == 0 ? value_set(&knob->applied, value, err) : r;
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

int params_request(struct params_table *params, struct push_owner *owner,
                   struct params_plugin *plugin, struct params_knob *knob,
                   const struct param_value *value, const char *by, struct error *err) {
    int r = value->form != PARAM_ABSENT ? param_check(&knob->spec, value, err) : 0;
    if (r < 0) {
        return r;
    }
    char *who = strdup(by);
    r = who == NULL ? error_set(err, -ENOMEM, "out of memory")
                    : value_set(&knob->requested, value, err);
    if (r < 0) {
        free(who);
        return r;
    }
    free(knob->requested_by);
    knob->requested_by = who;
    knob->requested_seconds = clock_wall_seconds();
    const struct param_value *wanted =
        value->form != PARAM_ABSENT ? &knob->requested : &knob->spec.initial;
    for (struct params_link *link = plugin->links; link != NULL; link = link->next) {
        link->send(link, knob->spec.name, wanted);
    }
    r = keep_request(params, owner, knob, err);
    params_export(params->store, owner, knob);
    return r;
}

/* ---- life ---- */

struct params_table *params_create(struct push_store *store) {
    struct params_table *params = calloc(1, sizeof(*params));
    if (params != NULL) {
        params->store = store;
        params->max_knobs = DEFAULT_MAX_KNOBS;
    }
    return params;
}

void params_limit(struct params_table *params, size_t max_knobs) {
    params->max_knobs = max_knobs;
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
