#pragma once

#include "exporter/daemon/daemon.h"
#include "exporter/settings/problems.h"

/* Reads the configuration again and applies it as a whole, or rejects it as a whole and reports why
 * in the log and to `request` (held; NULL: none). The files are read on a worker. */
void reload_start(struct daemon *daemon, struct http_request *request);

/* Reads the whole configuration: flags, environment, file, and the web configuration file that they
 * name. Looks up host names and groups, which may be slow: not to be called on the loop. -EINVAL
 * with all mistakes in `problems`. `*ret_web_config` is NULL if no file is named. */
int reload_read(const struct daemon *daemon, struct config **ret_config,
                struct web_config **ret_web_config, struct problems *problems);

/* Activates a configuration. If it fails, nothing has changed. Takes its own references. */
int reload_apply(struct daemon *daemon, struct config *config, struct web_config *web_config,
                 struct error *err);
