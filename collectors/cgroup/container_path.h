#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

/* The container that a process runs in, for everything that knows processes and wants to name
 * containers: GPU clients, peers on a socket. */

/* Finds it in the text of /proc/<pid>/cgroup: the first hierarchy that knows one. False where the
 * process is in none. The result points into `text`. */
bool container_id_parse(const char *text, struct container_path *ret_path);

/* The path of the cgroup of the container that process `pid` (as seen under `procfs`) is in: the
 * label `id` of its metrics. The caller frees it. -ENOENT where the process is in no container,
 * -ESRCH where there is no such process. */
int container_cgroup_of_pid(const char *procfs, pid_t pid, char **ret_path);

/* The containers that processes run in, each looked up once: for the clients of a GPU, which are
 * listed over and over. A zeroed struct knows none. */
struct container_homes {
    struct container_home *rows; /* sorted by pid */
    size_t n_rows, cap_rows;
    unsigned round;
};

/* Begins a list of processes: those that were not in the one before are forgotten. */
void container_homes_begin(struct container_homes *homes);

/* The path of the cgroup of the container that process `pid` (as seen under `procfs`) runs in, the
 * label `id` of its metrics; NULL where it is in none. It is good until the next list begins. */
const char *container_homes_see(struct container_homes *homes, const char *procfs, pid_t pid);

/* The same for a process of this list; NULL also where it was not in it. */
const char *container_homes_find(const struct container_homes *homes, pid_t pid);

void container_homes_finish(struct container_homes *homes);

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
