#pragma once

#include <stdbool.h>

#include "exporter/channel/knobs.h"
#include "exporter/http/request.h"
#include "exporter/push/store.h"

/* Which plugin and which of its knobs an address means. */

struct http_params_found {
    struct push_owner *owner;
    struct params_plugin *plugin;
    struct params_knob *knob;
};

/* Finds the one knob that is meant; false: there is none or several, and the request has been
 * answered. */
bool http_params_find(struct http_request *request, const char *plugin, const char *param,
                      struct http_params_found *ret_found);

/* The value of one of its labels, or NULL. */
const char *http_params_label(const struct push_owner_view *view, const char *name);

/* Whether it is a plugin, not a group of a Pushgateway's client. */
bool http_params_is_plugin(const struct push_owner_view *view);
