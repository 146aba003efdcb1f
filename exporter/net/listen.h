#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/error.h"
#include "exporter/loop/loop.h"
#include "exporter/net/listen_names.h"

/* The sockets we listen on. */

struct http_listeners;

/* Called on the loop for each new connection; takes the descriptor. */
typedef void http_accept_function(int fd, void *context);

struct http_listeners *http_listeners_create(struct loop *loop, http_accept_function *accepted,
                                             void *context);

struct http_listen_config {
    const char *name;                 /* in logs and of sockets of systemd: "http" or "push" */
    const char *const *addresses;     /* NULL-terminated */
    bool passed;                      /* use the sockets of systemd instead */
    const char *mode;                 /* of Unix sockets, in octal */
    const char *group;                /* of Unix sockets; "": that of the process */
    const char *group_option;         /* the setting that names it */
    const struct listen_names *names; /* with its hosts and its group */
};

/* Listens there. Addresses that are open already stay open, unless their Unix socket is gone from
 * the file system; all others are bound before any is closed, so a failure changes nothing. */
int http_listeners_listen(struct http_listeners *listeners, const struct http_listen_config *config,
                          struct error *err);

/* Whether all Unix sockets are still in the file system. */
bool http_listeners_are_there(const struct http_listeners *listeners);

/* Stops listening and removes our Unix sockets from the file system. Accepts NULL. */
void http_listeners_destroy(struct http_listeners *listeners);

/* ---- sockets of systemd ---- */

/* Sockets that systemd hands over at the start, by LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES. Those
 * of a socket unit with FileDescriptorName=push are for plugins, all others for HTTP. */

enum { LISTEN_PASSED_MAX = 64 };

/* Finds the descriptors for `user`, "http" or "push"; returns how many. */
size_t listen_passed_find(const char *user, int ret_fds[static LISTEN_PASSED_MAX]);
