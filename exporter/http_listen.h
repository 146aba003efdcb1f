#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/error.h"
#include "exporter/core/settings.h"
#include "exporter/loop.h"

/* The sockets we listen on. */

struct http_listeners;

/* Called on the loop for each new connection; takes the descriptor. */
typedef void http_accept_function(int fd, void *context);

int http_listeners_create(struct loop *loop, http_accept_function *accepted, void *context,
                          struct http_listeners **ret_listeners, struct error *err);

/* Listens on the addresses of the settings (or on what systemd hands over). Addresses that are open
 * already stay open; all others are bound before any is closed, so a failure changes nothing. */
int http_listeners_configure(struct http_listeners *listeners, const struct settings *settings,
                             struct error *err);

/* Stops listening and removes our Unix sockets from the file system. Accepts NULL. */
void http_listeners_destroy(struct http_listeners *listeners);
