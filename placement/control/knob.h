#pragma once

#include <stdbool.h>

#include "exporter/channel/knob.h"
#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "placement/client/web_client.h"
#include "placement/control/config.h"

/* A knob as the exporter shows it. */
struct control_knob {
    enum knob_type type;
    double min, max, step; /* infinite, 0: not declared */
    struct knob_value initial, requested, applied;
    double requested_seconds, applied_seconds; /* since 1970 */
    struct buf text;                           /* the texts are in it */
};

void control_knob_finish(struct control_knob *knob);

/* Gets a knob from the exporter; -ENOENT if there is none. */
int control_knob_read(struct web_client *exporter, const struct control_knob_name *name,
                      struct control_knob *knob, struct error *err);

/* Requests a value; `knob` is the knob after that. */
int control_knob_write(struct web_client *exporter, const struct control_knob_name *name,
                       const struct knob_value *value, struct control_knob *knob,
                       struct error *err);

/* Whether the plugin has not yet answered the last request. */
bool control_knob_is_pending(const struct control_knob *knob);

/* The value that the plugin has applied, else the requested one, else the default. */
const struct knob_value *control_knob_value(const struct control_knob *knob);
