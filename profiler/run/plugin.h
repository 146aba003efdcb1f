#pragma once

#include <stdbool.h>

#include "collectors/collector.h"
#include "exporter/channel/knob.h"
#include "exporter/loop/loop.h"
#include "exporter/settings/config.h"
#include "profiler/run/progress.h"
#include "profiler/run/record.h"

/* The plugin channel of one run, as the daemon has it, at the socket that the settings name. What
 * the application sends there is part of the record, and its knobs can be turned. */
struct run_plugin;

int run_plugin_create(struct loop *loop, struct config *config,
                      const struct collector *const *collectors, struct run_plugin **ret_plugin,
                      struct error *err);
void run_plugin_destroy(struct run_plugin *plugin); /* accepts NULL */

/* Adds all that the application told to a sample. */
void run_plugin_write(struct run_plugin *plugin, struct run_record *record, struct run_live *live);

/* Frames counted so far, by fps_total or frames_total; NAN: it counts none. */
double run_plugin_frames(struct run_plugin *plugin);

/* A knob and the value that it is to have. */
struct run_knob {
    const char *name;
    struct knob_value value;
};

/* Asks every plugin that has the knobs for these values, once; how many have been applied. A value
 * that a knob cannot have is -EINVAL. */
int run_plugin_turn(struct run_plugin *plugin, const struct run_knob *knobs, size_t n_knobs,
                    struct error *err);

/* Of the knobs that are asked for, what plugins have declared. */
enum run_knobs {
    RUN_KNOBS_ALL,
    RUN_KNOBS_NONE,   /* no knob at all */
    RUN_KNOBS_OTHERS, /* some, but not all of these */
};
enum run_knobs run_plugin_knobs(struct run_plugin *plugin, const struct run_knob *knobs,
                                size_t n_knobs);

/* Why not all of them have been applied, about the first of those. */
void run_plugin_explain(struct run_plugin *plugin, const struct run_knob *knobs, size_t n_knobs,
                        struct buf *out);
