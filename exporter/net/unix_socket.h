#pragma once

#include <stddef.h>

#include "exporter/core/buf.h"

/* The client's side of a Unix stream socket, without blocking. */

/* Connects to `path`. The descriptor, or a negative errno. */
int unix_socket_connect(const char *path);

/* Sends as much of `out` as possible from `*n_sent` on, which moves. 0 or a negative errno. */
int unix_socket_send(int fd, const struct buf *out, size_t *n_sent);

/* Appends the bytes that have arrived, at most `room`. Returns how many; -EAGAIN if there are none
 * yet, 0 if the peer has hung up, or another negative errno. */
int unix_socket_receive(int fd, size_t room, struct buf *in);
