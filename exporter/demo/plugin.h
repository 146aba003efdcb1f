#pragma once

#include "exporter/channel/knobs.h"
#include "exporter/loop/loop.h"
#include "exporter/push/store.h"

/* The plugins in the simulated containers: a detector, whose frame rate depends on its knob `res`,
 * and an uploader. They exchange the same messages as real ones. On the loop thread. */
struct demo_plugins;

struct demo_plugins *demo_plugins_create(struct loop *loop, struct push_store *store,
                                         struct knobs *knobs);
void demo_plugins_destroy(struct demo_plugins *plugins); /* accepts NULL */
