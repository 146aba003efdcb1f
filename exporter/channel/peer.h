#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "exporter/core/error.h"
#include "exporter/loop/loop.h"
#include "exporter/settings/config.h"

/* Who is at the other end of a Unix socket, as the kernel tells: the process, and by its cgroup the
 * container. What a container is called is asked of its runtime, which may take a moment. */
struct push_peers;

struct push_peer {
    pid_t pid; /* 0: in a process namespace that is hidden from us; then nothing more is known */
    uid_t uid;
    bool gone;           /* the process has ended already, so nobody can tell its cgroup */
    bool of_our_network; /* where it is gone: not in a container with a network of its own */
    char *process;       /* what the program is called; or NULL */
    char *container_id;  /* NULL: runs in none */
    char *container; /* its name, within the pod if there is one; else the beginning of its id */
    char *pod, *namespace;

    /* Called on the loop once the names are there, or nobody knows them; not within
     * push_peers_identify. */
    void (*named)(struct push_peer *peer);
    bool waiting; /* for that */
    int64_t asked_ns;
    struct container *asked;
    struct push_peer *next;
};

/* Nothing is asked before the first configuration. */
struct push_peers *push_peers_create(struct loop *loop);
void push_peers_destroy(struct push_peers *peers); /* accepts NULL; nobody may wait */

/* Takes over where processes and runtimes are found. */
void push_peers_configure(struct push_peers *peers, struct config *config);

/* Fills in who is at the other end of `fd`; `named` stays, the rest is overwritten. */
int push_peers_identify(struct push_peers *peers, int fd, struct push_peer *peer,
                        struct error *err);

/* Whether the limits per peer count both as one: they are of the same container or user, or it is
 * not known whose either is. */
bool push_peer_is_same(const struct push_peer *a, const struct push_peer *b);

/* Frees what is known of the peer; it no longer waits. */
void push_peers_forget(struct push_peers *peers, struct push_peer *peer);

/* What a program is called by its command line, words ended by NUL: the script where it is an
 * interpreter's. The caller frees it; NULL: cannot be told. */
char *push_peer_program(const char *command_line, size_t len);
