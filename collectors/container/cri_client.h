#pragma once

#include <stdint.h>

#include "collectors/container/info.h"

/* Asks a runtime what Kubernetes asks it (CRI): which pods there are and which containers are
 * theirs. Only this tells the labels of pods. Nothing here ever waits. */
struct cri_client;

/* Talks to the first of `sockets` that answers; they need not be there yet. NULL when memory is
 * out. */
struct cri_client *cri_client_create(char *const *sockets, size_t n_sockets,
                                     container_label_patterns wanted);
void cri_client_destroy(struct cri_client *client); /* accepts NULL */

/* Goes on with whatever is under way. */
void cri_client_step(struct cri_client *client, int64_t now_ns);

/* What was told about the container or sandbox, with the labels of its pod behind its own; or NULL.
 * Good until the next step. */
const struct container_info *cri_client_find(const struct cri_client *client, const char *id);

/* Has the lists asked for: there is a container that they do not have. */
void cri_client_ask(struct cri_client *client);

/* Changes whenever something was told. */
unsigned cri_client_generation(const struct cri_client *client);
