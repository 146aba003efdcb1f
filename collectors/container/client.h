#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "collectors/container/info.h"
#include "exporter/core/buf.h"

/* Names of the containers of Docker or podman, by HTTP over a Unix socket: the list once, then
 * events. No call ever waits: every step does what can be done at once, so a runtime that does not
 * respond delays nothing. */
struct container_client;

/* The client of `socket`, which need not exist yet. */
struct container_client *container_client_create(const char *socket,
                                                 container_label_patterns wanted);
void container_client_destroy(struct container_client *client); /* accepts NULL */

/* Sends and reads what can be at once. */
void container_client_step(struct container_client *client, int64_t now_ns);

/* The container with that id, or NULL; valid until the next step. If it is unknown and events are
 * not being read, the list will be requested. */
const struct container_info *container_client_find(struct container_client *client, const char *id);

/* Forgets a container that is gone. */
void container_client_forget(struct container_client *client, const char *id);

/* Whether the runtime runs containers for that user, as the owner of its socket. */
bool container_client_serves(const struct container_client *client, uid_t user);

/* Whether the runtime is connected and sends events when containers start. */
bool container_client_listens(const struct container_client *client);

/* Changes whenever a container was added or changed. */
unsigned container_client_generation(const struct container_client *client);
