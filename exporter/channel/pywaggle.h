#pragma once

#include "exporter/loop/loop.h"
#include "exporter/push/log.h"
#include "exporter/push/store.h"
#include "exporter/settings/settings.h"

/* Follows the run logs of plugins that use pywaggle (--push.pywaggle-log) and turns what they
 * publish into metrics. In each directory, data.ndjson belongs to the plugin of the directory's
 * name, and NAME/data.ndjson to the plugin NAME. Lines from before the directory was configured are
 * skipped, and logs of a plugin name that a better known peer owns. On the loop thread. */
struct pywaggle;

struct pywaggle *pywaggle_create(struct loop *loop, struct push_store *store, struct push_log *log);
void pywaggle_destroy(struct pywaggle *pywaggle); /* accepts NULL */

/* Takes over the directories, at start and after a reload. */
void pywaggle_configure(struct pywaggle *pywaggle, const struct settings *settings);
