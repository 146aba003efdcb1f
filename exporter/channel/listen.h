#pragma once

#include <stddef.h>

#include "exporter/loop/loop.h"
#include "exporter/net/listen.h"
#include "exporter/settings/config.h"

/* The paths on which the plugin channel listens, each on its own: one that cannot be used does not
 * keep the others closed. */
struct push_listen;

/* NULL when memory is out. */
struct push_listen *push_listen_create(struct loop *loop, http_accept_function *accepted,
                                       void *context);
void push_listen_destroy(struct push_listen *listen); /* accepts NULL */

/* Asks for the names in the settings, which may take long. -ENOMEM, or 0. */
int push_listen_lookup(const struct settings *settings, struct listen_names *names);

/* Opens, keeps and closes as push.socket says; makes the last directory of a path. What fails is
 * logged, and tried again every few seconds, as is what vanishes from the file system. */
void push_listen_configure(struct push_listen *listen, struct config *config);

/* How many connections there may be: as many as push.max-connections, or as the process has
 * descriptors for besides those of HTTP. */
size_t push_listen_room(const struct settings *settings);
