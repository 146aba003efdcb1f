#pragma once

#include <stddef.h>

#include "exporter/core/buf.h"

/* The side that asks on a Unix stream socket, never waiting. */

/* Connects to `path`. The descriptor, or a negative errno. */
int unix_socket_connect(const char *path);

/* Sends what can be sent at once of `out` from `*n_sent` on, which moves. 0 or a negative errno. */
int unix_socket_send(int fd, const struct buf *out, size_t *n_sent);

/* Appends what has come, at most `room` bytes. How many those are, -EAGAIN where there are none
 * yet, 0 where the peer has hung up, or another negative errno. */
int unix_socket_receive(int fd, size_t room, struct buf *in);
