#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The exporter's end of the plugin channel as a test wants it: on a socket of its own, for a plugin
 * that is a forked child. It adds up totals as the daemon does and remembers them over connections
 * that it ends as rudely as asked. */
enum { PUSH_PEER_MAX_CLIENTS = 4 };

struct push_peer {
    char path[64];
    int listen_fd;
    struct {
        int fd;
        char *text; /* what has come of the next line */
        size_t len;
        json_t *hello;
        json_t *declared; /* {metric: type} of this connection */
    } clients[PUSH_PEER_MAX_CLIENTS];

    json_t *last;  /* {start: {series: total}} as the daemon keeps them */
    json_t *sums;  /* {series: sum of differences}, gauges as set */
    json_t *lines; /* every line that was understood, in order */
    size_t n_hellos;
    size_t n_bytes;

    /* How it behaves. */
    size_t piece;     /* reads and writes that many bytes at a time; 0: as they come */
    size_t end_after; /* ends the connection, and the socket with it, after so many bytes */
    size_t n_ends;    /* how often it does so; 0: without end */
    bool never_reads;
    bool never_acks;
    const char *answer; /* sent after each hello */
    /* Looks at every line, may answer it. */
    void (*on_line)(struct push_peer *peer, int fd, json_t *line);
};

void push_peer_open(struct push_peer *peer);
void push_peer_close(struct push_peer *peer);

/* Forks a plugin that runs `plugin` with WAAP_PUSH_SOCKET set, and exits. */
pid_t push_peer_fork(struct push_peer *peer, void (*plugin)(void));

/* Serves until the child has ended and all it said is read; returns its status as waitpid does. */
int push_peer_serve(struct push_peer *peer, pid_t pid);

/* Away and back again: the socket's file goes and comes. */
void push_peer_unlisten(struct push_peer *peer);
void push_peer_listen(struct push_peer *peer);

/* Sends a text to a client in pieces as set. */
void push_peer_send(struct push_peer *peer, int fd, const char *text);

/* The sum of `series`, as in "frames_total", or with its labels as they came:
 * "frames_total{\"cam\":\"top\"}"; -1: never seen. */
double push_peer_sum(const struct push_peer *peer, const char *series);

/* The first line with that string under `key`, NULL: none. */
json_t *push_peer_find(const struct push_peer *peer, const char *key, const char *value);
