#pragma once

#include "exporter/channel/knobs.h"

/* Puts a knob's values into the push store as series of its owner: plugin_param and, where a value
 * was asked for, plugin_param_requested. Strings and enums have no number: they are the label
 * `value` of plugin_param_info and plugin_param_requested_info. Where the store has no room for
 * them it counts that; the knob works all the same. */
void params_export(struct push_store *store, struct push_owner *owner, struct params_knob *knob);

/* The same of what was asked of a plugin that is not connected: it is shown as long as the rest of
 * the plugin, and brings nothing back. */
void params_export_away(struct push_store *store, struct push_owner *owner,
                        struct params_knob *knob);

/* Takes away what an earlier daemon showed of all knobs of the owner. Looks at all its series. */
void params_export_clear(struct push_store *store, struct push_owner *owner);

/* Their descriptions; nobody else may push these names. */
extern const struct metric_desc params_applied_metric, params_requested_metric,
    params_applied_info_metric, params_requested_info_metric;
