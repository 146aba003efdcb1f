#pragma once

#include "exporter/channel/knobs.h"
#include "exporter/core/error.h"
#include "exporter/loop/loop.h"
#include "exporter/push/store.h"

/* The plugins in the simulated containers: a detector, whose frame rate depends on its knob `res`,
 * and an uploader. They say what real ones would, line by line, and listen to what they are told.
 * On the loop thread. */
struct demo_plugins;

int demo_plugins_create(struct loop *loop, struct push_store *store, struct knobs *knobs,
                        struct demo_plugins **ret_plugins, struct error *err);
void demo_plugins_destroy(struct demo_plugins *plugins); /* accepts NULL */

/* How long a picture of that many lines takes the detector, in seconds, and how many it does in a
 * second: not more than the camera gives. */
double demo_plugin_latency(double lines);
double demo_plugin_fps(double lines);
