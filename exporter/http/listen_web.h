#pragma once

#include "exporter/net/listen.h"
#include "exporter/settings/settings.h"

/* Where the settings under `web` have the server listen. */

/* Looks up the names in these settings, which may take long. -ENOMEM, or 0. */
int http_listeners_lookup(const struct settings *settings, struct listen_names *names);

/* Listens there, with the names that were looked up. */
int http_listeners_configure(struct http_listeners *listeners, const struct settings *settings,
                             const struct listen_names *names, struct error *err);
