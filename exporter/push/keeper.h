#pragma once

#include "exporter/loop/loop.h"
#include "exporter/push/log.h"
#include "exporter/push/store.h"
#include "exporter/settings/settings.h"

/* Runs the daemon's push store: opens it by the settings, restores what it had, removes what has
 * expired, saves the state file. On the loop thread. */
struct push_keeper;

int push_keeper_create(struct loop *loop, const struct settings *settings,
                       const struct collector *const *collectors, struct push_keeper **ret_keeper,
                       struct error *err);

/* Saves once more and ends the thread; false: the thread hangs in a disk access. Accepts NULL. */
bool push_keeper_stop(struct push_keeper *keeper);
void push_keeper_destroy(struct push_keeper *keeper); /* accepts NULL */

/* Applies limits and times after a reload. */
void push_keeper_configure(struct push_keeper *keeper, const struct settings *settings);

/* Adds the metrics of the store. The keeper owns the labels. */
void push_keeper_collect(struct push_keeper *keeper, struct snapshot *out);

/* Valid as long as the keeper. */
struct push_store *push_keeper_store(struct push_keeper *keeper);

/* The log of refused pushes; valid as long. */
struct push_log *push_keeper_log(struct push_keeper *keeper);
