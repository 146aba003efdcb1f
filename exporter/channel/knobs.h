#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/channel/knob.h"
#include "exporter/core/error.h"
#include "exporter/metrics/exposition.h"
#include "exporter/push/store.h"

/* The knobs of all plugins: declarations, requested and applied values. A request is a note of the
 * plugin's owner in the push store, so it survives connections and restarts. On the loop thread. */
struct knobs;

struct knobs_plugin;

/* Is called after the knobs of a plugin have changed. */
struct knobs_listener {
    void (*changed)(struct knobs_listener *listener, const struct knobs_plugin *plugin);
};

/* One connection of a plugin, which receives requested values. Embedded in the connection. */
struct knobs_link {
    void (*send)(struct knobs_link *link, const char *name, const struct knob_value *value);
    struct knobs_plugin *plugin; /* NULL: it has not declared a knob */
    struct knobs_link *next;
};

/* One knob, as users see it. */
struct knob {
    struct knob_spec spec;
    struct knob_value requested; /* absent: no request, the default applies */
    double requested_seconds;    /* since 1970 */
    char *requested_by;
    struct knob_value applied; /* absent: not known */
    double applied_seconds;
    struct labels *requested_labels, *applied_labels; /* of its series; NULL: not rendered yet */
    struct knob *next;
};

/* The knobs of one plugin: of one owner in the store. */
struct knobs_plugin {
    uint64_t owner_number;
    uint64_t version;         /* of the last change; grows, also over restarts */
    struct knobs_link *links; /* receive requests; without one these wait for the plugin */
    int64_t polled_ns;        /* when the plugin last waited for changes over HTTP; 0: never */
    char *peer;               /* that declared them: see push_claim_share */
    struct knob *knobs;       /* sorted by name */
    size_t n_knobs;
    size_t n_bytes;     /* that they can take */
    size_t labels_size; /* of the owner, which each of them shows */
    struct knobs_plugin *next;
};

struct knobs *knobs_create(struct push_store *store);
void knobs_destroy(struct knobs *knobs); /* accepts NULL; all links have left */

/* `listener` outlives the knobs. */
void knobs_listen(struct knobs *knobs, struct knobs_listener *listener);

/* The plugin declares a knob; an earlier request is sent at once. `link` NULL: the plugin has no
 * connection and asks for requests over HTTP. -EINVAL, -E2BIG. */
int knobs_declare(struct knobs *knobs, struct knobs_link *link, struct push_owner *owner,
                  const struct knob_spec *spec, struct error *err);

/* The plugin has applied a value; `plugin` NULL: it has no knobs. -ENOENT: no such knob is
 * declared; -EINVAL: invalid value. */
int knobs_applied(struct knobs *knobs, struct knobs_plugin *plugin, const char *name,
                  const struct knob_value *value, struct error *err);

/* The connection ends, or belongs to another owner from here on. */
void knobs_leave(struct knobs_link *link);

/* The knobs of that owner; NULL: it has none. If the plugin has not connected since the daemon
 * started, these are the knobs with a request, without applied values. */
struct knobs_plugin *knobs_of(struct knobs *knobs, struct push_owner *owner);

struct knob *knobs_find(const struct knobs_plugin *plugin, const char *name);

/* Requests a value on behalf of `by`; absent: the default. -EINVAL: invalid; -ENOSPC: not kept. */
int knobs_request(struct knobs *knobs, struct push_owner *owner, struct knobs_plugin *plugin,
                  struct knob *knob, const struct knob_value *value, const char *by,
                  struct error *err);

/* Renders the values of all knobs as plugin_param and, if a value was requested,
 * plugin_param_requested. Strings and enums have no number: they are the label `value` of
 * plugin_param_info and plugin_param_requested_info. The caller drops the part with
 * exposition_part_unref. */
struct exposition_part *knobs_part(struct knobs *knobs);

/* Their descriptions; pushes of these names are rejected. */
extern const struct metric_desc knobs_applied_metric, knobs_requested_metric,
    knobs_applied_info_metric, knobs_requested_info_metric;
