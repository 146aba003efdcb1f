#pragma once

#include <sys/types.h>

#include "collectors/cgroup/container_path.h"

/* A name of a cgroup is no proof of a container: below a service or scope of systemd that was
 * delegated to a user, that user makes cgroups of any name, another container's too. */

#define CONTAINER_OWNER_UNKNOWN ((uid_t)-1)

/* The user that made the cgroup `path`, which `classified` describes, in the hierarchy at the
 * directory `hierarchy`: the first owner of a cgroup above it other than root, or 0. */
uid_t container_owner(const char *hierarchy, const char *path,
                      const struct container_path *classified);

/* The same for a cgroup that container_id_parse found in `text`, of /proc/<pid>/cgroup. */
uid_t container_owner_in(const char *cgroupfs, const char *text,
                         const struct container_path *classified);
