#pragma once

#include "exporter/channel/knobs.h"
#include "exporter/channel/knobs_note.h"

/* One knob among those of its plugin. */

void params_knob_destroy(struct params_knob *knob);

/* Most bytes that a knob of this kind takes. */
size_t params_knob_room(const struct param_spec *spec);

/* Puts it in its place among the others. */
void params_knob_insert(struct params_plugin *plugin, struct params_knob *knob);

/* Notes what was asked of it. False: memory is out. */
bool params_knob_ask(struct params_knob *knob, const struct params_wish *wish);
