#pragma once

#include "exporter/loop/loop.h"
#include "exporter/push/log.h"
#include "exporter/push/store.h"
#include "exporter/settings/settings.h"

/* Keeps the daemon's push store: opens it as the settings say, with what it held before; drops what
 * has outlived its time to live; saves the state file. On the loop thread. */
struct push_keeper;

int push_keeper_create(struct loop *loop, const struct settings *settings,
                       const struct collector *const *collectors, struct push_keeper **ret_keeper,
                       struct error *err);

/* Saves for the last time, and ends its thread; false: that hangs, as the disk does. Accepts NULL.
 */
bool push_keeper_stop(struct push_keeper *keeper);
void push_keeper_destroy(struct push_keeper *keeper); /* accepts NULL */

/* Takes over limits and times after a reload. */
void push_keeper_configure(struct push_keeper *keeper, const struct settings *settings);

/* Adds what is to be said of the store. The labels stay the keeper's. */
void push_keeper_collect(struct push_keeper *keeper, struct snapshot *out);

/* Lives as long as the keeper. */
struct push_store *push_keeper_store(struct push_keeper *keeper);

/* Where refusals of its store are logged; lives as long as well. */
struct push_log *push_keeper_log(struct push_keeper *keeper);
