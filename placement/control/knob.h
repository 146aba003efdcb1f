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
    double min, max, step; /* infinite, 0: not said */
    struct knob_value initial, requested, applied;
    double requested_seconds, applied_seconds; /* since 1970 */
    struct buf text;                           /* what the texts lie in */
};

void control_knob_finish(struct control_knob *knob);

/* Reads what stands in `knob->text`, in place: {"status": "success", "data": {"param": …}}. -EINVAL
 * where it is no such thing; -EREMOTEIO with the exporter's words where that is an error. */
int control_knob_parse(struct control_knob *knob, struct error *err);

/* Asks the exporter for a knob; -ENOENT where there is none. */
int control_knob_read(struct web_client *exporter, const struct control_knob_name *name,
                      struct control_knob *knob, struct error *err);

/* Asks the exporter to turn it; `knob` is what it shows then. */
int control_knob_write(struct web_client *exporter, const struct control_knob_name *name,
                       const struct knob_value *value, struct control_knob *knob,
                       struct error *err);

/* Whether the plugin has still to say something about what was requested last. */
bool control_knob_is_pending(const struct control_knob *knob);

/* Where the knob is: what the plugin has applied, else what was requested, else the default. */
const struct knob_value *control_knob_value(const struct control_knob *knob);
