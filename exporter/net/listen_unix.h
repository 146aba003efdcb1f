#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "exporter/core/error.h"
#include "exporter/net/listen.h"

/* A Unix socket that we listen on, as it stands in the file system. */
struct listen_unix {
    char *path; /* NULL: none */
    dev_t device;
    ino_t inode;
};

/* Listens on the path, which sockaddr_un can hold, with the mode and group of the configuration. A
 * socket that nobody listens on is replaced; anything else that stands there is left alone.
 * Returns the descriptor. */
int listen_unix_open(const char *path, int backlog, const struct http_listen_config *config,
                     struct listen_unix *ret_socket, struct error *err);

/* Whether it still stands where it was made: else nobody can connect any more. */
bool listen_unix_is_there(const struct listen_unix *socket);

/* Gives it the mode and group of the configuration. */
int listen_unix_permit(const struct listen_unix *socket, const struct http_listen_config *config,
                       struct error *err);

/* Removes it, unless something else has taken its place by now. */
void listen_unix_finish(struct listen_unix *socket);
