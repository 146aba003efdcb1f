#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "exporter/core/error.h"
#include "exporter/loop/loop.h"
#include "exporter/settings/config.h"

/* The peer of a Unix socket as the kernel reports it: the process and, by its cgroup, the
 * container. The runtime is asked for the container's names, which may take a moment. */
struct push_peers;

struct push_peer {
    pid_t pid; /* 0: in a process namespace that is hidden from us; then nothing more is known */
    uid_t uid;
    bool gone;           /* the process has exited already, so its cgroup is unknown */
    bool of_our_network; /* if it is gone: it was not in a container with its own network */
    char *process;       /* name of the program, or NULL */
    char *container_id;  /* NULL: runs in none */
    char *container; /* its name, within the pod if there is one; else the beginning of its id */
    char *pod, *namespace;

    /* Called on the loop when the search for names ends; not within push_peers_identify. */
    void (*named)(struct push_peer *peer);
    bool waiting; /* for that */
    int64_t asked_ns;
    struct container *asked;
    struct push_peer *next;
};

/* Nothing is asked before the first configuration. */
struct push_peers *push_peers_create(struct loop *loop);
void push_peers_destroy(struct push_peers *peers); /* accepts NULL; no peer may wait */

/* Takes over where processes and runtimes are found. */
void push_peers_configure(struct push_peers *peers, struct config *config);

/* Fills in the peer at the other end of `fd`; `named` stays, the rest is overwritten. */
int push_peers_identify(struct push_peers *peers, int fd, struct push_peer *peer,
                        struct error *err);

/* Whether the limits per peer count both as one: same container or user, or both unknown. */
bool push_peer_is_same(const struct push_peer *a, const struct push_peer *b);

/* Frees what is known of the peer; it no longer waits. */
void push_peers_forget(struct push_peers *peers, struct push_peer *peer);

/* The name of a program, or of an interpreter's script, by its command line of words ended by NUL.
 * The caller frees it; NULL: unknown. */
char *push_peer_program(const char *command_line, size_t len);
