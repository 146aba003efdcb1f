#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/channel/knob.h"
#include "exporter/core/error.h"
#include "exporter/metrics/exposition.h"
#include "exporter/push/store.h"

/* The knobs of all plugins: what they declared, what was asked of them, what they have applied.
 * What was asked is a note of the plugin's owner in the push store, so it outlives connections and
 * daemons. On the loop thread. */
struct params_table;

/* One connection of a plugin, where values go to. Embedded in the connection. */
struct params_link {
    void (*send)(struct params_link *link, const char *name, const struct param_value *value);
    struct params_plugin *plugin; /* NULL: has declared nothing */
    struct params_link *next;
};

/* One knob, as users see it. */
struct params_knob {
    struct param_spec spec;
    struct param_value requested; /* absent: nothing was asked, the default holds */
    double requested_seconds;     /* since 1970 */
    char *requested_by;
    struct param_value applied; /* absent: not known */
    double applied_seconds;
    struct labels *requested_labels, *applied_labels; /* of its series; NULL: not rendered yet */
    struct params_knob *next;
};

/* The knobs of one plugin: of one owner in the store. */
struct params_plugin {
    uint64_t owner_number;
    struct params_link *links;
    char *peer;                /* who declared them, by all its names: see push_claim_share */
    struct params_knob *knobs; /* sorted by name */
    size_t n_knobs;
    size_t n_bytes; /* that they can take */
    struct params_plugin *next;
};

struct params_table *params_create(struct push_store *store); /* NULL when memory is out */
void params_destroy(struct params_table *params); /* accepts NULL; all links have left */

/* How many knobs a plugin may have, and how many bytes those of one peer may take, whatever it
 * calls itself. */
void params_limit(struct params_table *params, size_t max_knobs, size_t max_peer_bytes);

/* The plugin at the other end of the link, whose owner is `owner`, has this knob. What was asked of
 * it before is sent at once. -EINVAL, -E2BIG, -ENOMEM. */
int params_declare(struct params_table *params, struct params_link *link, struct push_owner *owner,
                   const struct param_spec *spec, struct error *err);

/* It has applied a value. -ENOENT: it has declared no such knob; -EINVAL: no value for it. */
int params_applied(struct params_link *link, const char *name, const struct param_value *value,
                   struct error *err);

/* The connection ends, or speaks for another owner from here on. */
void params_leave(struct params_link *link);

/* The knobs of that owner; NULL: it has none. Of a plugin that has not been connected since the
 * daemon began, these are the ones of which something was asked; what they have applied is absent.
 */
struct params_plugin *params_of(struct params_table *params, struct push_owner *owner);

struct params_knob *params_find_knob(const struct params_plugin *plugin, const char *name);

/* Whether somebody hears what is asked; else it is kept until the plugin is back. */
bool params_is_connected(const struct params_plugin *plugin);

/* Asks for a value, in the name of `by`; absent: back to the default. -EINVAL: not a value for it;
 * -ENOSPC, -ENOMEM: it cannot be kept. */
int params_request(struct params_table *params, struct push_owner *owner,
                   struct params_plugin *plugin, struct params_knob *knob,
                   const struct param_value *value, const char *by, struct error *err);

/* Renders the values of all knobs as plugin_param and, if a value was requested,
 * plugin_param_requested. Strings and enums have no number: they are the label `value` of
 * plugin_param_info and plugin_param_requested_info. The caller drops the part with
 * exposition_part_unref. */
struct exposition_part *params_part(struct params_table *params);

/* Their descriptions; nobody may push these names. */
extern const struct metric_desc params_applied_metric, params_requested_metric,
    params_applied_info_metric, params_requested_info_metric;
