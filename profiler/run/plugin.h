#pragma once

#include "collectors/collector.h"
#include "exporter/channel/knob.h"
#include "exporter/loop/loop.h"
#include "exporter/settings/config.h"
#include "profiler/run/progress.h"
#include "profiler/run/record.h"

/* The plugin channel of one run: the daemon's, at the socket in the settings. The metrics that the
 * application pushes become part of the record, and its knobs can be turned. */
struct run_plugin;

int run_plugin_create(struct loop *loop, struct config *config,
                      const struct collector *const *collectors, struct run_plugin **ret_plugin,
                      struct error *err);
void run_plugin_destroy(struct run_plugin *plugin); /* accepts NULL */

/* Adds all pushed metrics to a sample. */
void run_plugin_write(struct run_plugin *plugin, struct run_record *record, struct run_live *live);

/* Frames so far, from fps_total or frames_total; NAN: neither is pushed. */
double run_plugin_frames(struct run_plugin *plugin);

/* A knob and its requested value. */
struct run_knob {
    const char *name;
    struct knob_value value;
};

/* Requests these values from every plugin that has the knobs, once. Returns how many knobs have
 * been applied, or -EINVAL for a value that a knob cannot have. */
int run_plugin_turn(struct run_plugin *plugin, const struct run_knob *knobs, size_t n_knobs,
                    struct error *err);

/* Which of the requested knobs the plugins have declared. */
enum run_knobs {
    RUN_KNOBS_ALL,
    RUN_KNOBS_NONE,   /* no knob at all */
    RUN_KNOBS_OTHERS, /* some, but not all of these */
};
/* Also appends why the first knob that is not applied is not. */
enum run_knobs run_plugin_knobs(struct run_plugin *plugin, const struct run_knob *knobs,
                                size_t n_knobs, struct buf *why);
