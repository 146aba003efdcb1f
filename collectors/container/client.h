#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "collectors/container/info.h"
#include "exporter/core/buf.h"

/* Asks a runtime on its Unix socket for the names of containers, by HTTP. Nothing here ever waits:
 * every step does what can be done at once, so a runtime that says nothing delays nobody. */

enum container_client_kind {
    CONTAINER_CLIENT_LIST, /* Docker and podman: a list once, then events */
    CONTAINER_CLIENT_CRIO, /* CRI-O: one question per container */
};

struct container_client;

/* Talks to `socket`, which need not be there yet. NULL when memory is out. */
struct container_client *container_client_create(enum container_client_kind kind,
                                                 const char *socket,
                                                 container_label_patterns wanted);
void container_client_destroy(struct container_client *client); /* accepts NULL */

/* Goes on with whatever is under way. */
void container_client_step(struct container_client *client, int64_t now_ns);

/* What the runtime has told about that container, or NULL; good until the next step. Where nothing
 * is known it will be asked for. */
const struct container_info *container_client_find(struct container_client *client, const char *id,
                                                   int64_t now_ns);

/* Forgets a container that is gone. */
void container_client_forget(struct container_client *client, const char *id);

/* Whether the runtime runs containers for that user, as the owner of its socket. */
bool container_client_serves(const struct container_client *client, uid_t user);

/* Whether the runtime is there and will tell of containers as they start. */
bool container_client_listens(const struct container_client *client);

/* Changes whenever something was told. */
unsigned container_client_generation(const struct container_client *client);
