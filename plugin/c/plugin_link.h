#pragma once

#include <sys/types.h>

#include "plugin_text.h"

/* One connection to the exporter; no call waits. */
struct waap_link {
    int fd;      /* -1: none */
    ino_t inode; /* of the socket */
    struct waap_text out;
    size_t n_sent; /* bytes of `out` that are gone */
    char *in;
    size_t in_len;
};

/* Connects. Returns 0 or a negative errno. */
int waap_link_open(struct waap_link *link, const char *path);

/* Drops the connection and what was on its way; as waap_link_check, it leaves alone what is not
 * ours. */
void waap_link_close(struct waap_link *link);

/* The same for good. */
void waap_link_finish(struct waap_link *link);

/* Whether the descriptor still is our socket: a program that turns into a daemon may have closed
 * all it found, and opened others. One that is not is left alone. */
bool waap_link_check(struct waap_link *link);

/* Sends of `out` what the socket takes. Returns 0, or a negative errno for a connection that is
 * over. */
int waap_link_send(struct waap_link *link);

/* Whether something waits to be sent. */
bool waap_link_full(const struct waap_link *link);

/* Calls `take` with each line that has come, without its end. Returns as waap_link_send. */
int waap_link_receive(struct waap_link *link, void (*take)(char *line));
