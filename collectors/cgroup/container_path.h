#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Which container a cgroup belongs to, by its path alone. */

enum container_runtime {
    CONTAINER_UNKNOWN, /* an id such as containers have, put there by somebody we do not know */
    CONTAINER_CONTAINERD,
    CONTAINER_CRIO,
    CONTAINER_DOCKER,
    CONTAINER_LXC,
    CONTAINER_NSPAWN,
    CONTAINER_PODMAN,
};

/* All texts point into the path. */
struct container_path {
    enum container_runtime runtime;
    const char *id; /* 64 hexadecimal digits, or the name for runtimes that have no ids */
    size_t id_len;
    size_t len;          /* of the path of the container's own cgroup; what follows is inside it */
    const char *pod_uid; /* Kubernetes, with _ for - where systemd made the slice; or NULL */
    size_t pod_uid_len;
    bool in_unit; /* below a service or scope of systemd; see container_owner */
};

/* Finds the outermost container on `path` ("/docker/<id>/…"), which ends at a NUL or newline. False
 * where the path is no container's: also for the monitors beside containers and for units that only
 * have an id in their name. */
bool container_path_classify(const char *path, struct container_path *ret_path);
