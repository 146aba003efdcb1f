#pragma once

#include "exporter/daemon/daemon.h"
#include "exporter/settings/problems.h"

/* Reads the configuration again and applies it as a whole, or refuses it as a whole and says why in
 * the log and to `request` (held; NULL: nobody asked by HTTP). The files are read on a worker. */
void reload_start(struct daemon *daemon, struct http_request *request);

/* Reads everything that is configured: flags, environment, file, and the web configuration file
 * they name; looks up the names of hosts and groups, so not to be called on the loop. -EINVAL with
 * all mistakes in `problems`. `*ret_web_config` is NULL where none is named. */
int reload_read(const struct daemon *daemon, struct config **ret_config,
                struct web_config **ret_web_config, struct problems *problems);

/* Puts a configuration into force. Fails before anything has changed. Takes its own references. */
int reload_apply(struct daemon *daemon, struct config *config, struct web_config *web_config,
                 struct error *err);
