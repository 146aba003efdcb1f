#pragma once

#include "exporter/core/error.h"
#include "exporter/loop/loop.h"
#include "placement/control/config.h"

/* Puts Waggle messages where wes-metrics-agent picks them up: one file each, DIRECTORY/waap/…. */
struct control_waggle;

/* Begins, on the loop, at the interval of the configuration, which must outlive it. */
int control_waggle_create(struct loop *loop, const struct control_config *config,
                          struct control_waggle **ret_waggle, struct error *err);

/* One round; returns how many files were written, or a negative errno. */
int control_waggle_run(struct control_waggle *waggle, struct error *err);

/* Lets a round that is under way end, and frees it; false where that takes too long and the process
 * should leave by _exit. Accepts NULL. */
bool control_waggle_destroy(struct control_waggle *waggle);
