#pragma once

#include "collectors/container/set.h"
#include "exporter/settings/settings.h"

/* Names and images of containers, from the runtimes' sockets and containerd's bundles. */
struct container_names;

/* Whether there is a socket or a bundle that may be opened. */
bool container_names_reachable(const char *rootfs, const struct settings *settings);

/* Sockets and bundles are below `rootfs`. */
struct container_names *container_names_create(const char *rootfs, const struct settings *settings);
void container_names_destroy(struct container_names *names); /* accepts NULL */

/* Exchanges what can be at once with the runtimes; never waits. */
void container_names_step(struct container_names *names, int64_t now_ns);

/* Whether there may be news since the container was last looked up. */
bool container_names_due(const struct container_names *names, const struct container *container,
                         int64_t now_ns);

/* All that is known of the container; the caller finishes it. */
void container_names_look_up(struct container_names *names, struct container *container,
                             int64_t now_ns, struct container_info *ret_info);

/* Whether a runtime is connected that will send an event with the container's name. */
bool container_names_will_come(const struct container_names *names,
                               const struct container *container);

/* Forgets a container that is gone. */
void container_names_forget(struct container_names *names, const struct container *container);
