#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The container that a cgroup or a process belongs to. */

enum container_runtime {
    CONTAINER_UNKNOWN, /* has a container's id, created by an unknown runtime */
    CONTAINER_CONTAINERD,
    CONTAINER_CRIO,
    CONTAINER_DOCKER,
    CONTAINER_LXC,
    CONTAINER_NSPAWN,
    CONTAINER_PODMAN,
};

/* All texts point into the path. */
struct container_path {
    const char *path; /* that of the container's own cgroup, and maybe of one inside it */
    size_t len;       /* of the former */
    enum container_runtime runtime;
    const char *id; /* 64 hexadecimal digits, or the name for runtimes that have no ids */
    size_t id_len;
    const char *pod_uid; /* Kubernetes, with _ for - if systemd created the slice; or NULL */
    size_t pod_uid_len;
    bool in_unit; /* below a service or scope of systemd; see container_owner */
};

/* Finds the outermost container on `path` ("/docker/<id>/…"), which ends at a NUL or newline. False
 * if the path is not a container's: also for the monitors beside containers and for units that only
 * have an id in their name. */
bool container_path_classify(const char *path, struct container_path *ret_path);

/* Finds the container in the text of /proc/<pid>/cgroup, in the first hierarchy that has one. False
 * if the process is in none. The result points into `text`. */
bool container_id_parse(const char *text, struct container_path *ret_path);

/* The path of the cgroup of the container that process `pid` (as seen under `procfs`) is in: the
 * label `id` of its metrics. The caller frees it. -ENOENT if the process is in no container, -ESRCH
 * if there is no such process. */
int container_cgroup_of_pid(const char *procfs, pid_t pid, char **ret_path);

/* The containers of processes, each looked up once: for the clients of a GPU, which are listed
 * repeatedly. A zeroed struct is empty. */
struct container_homes {
    struct container_home *rows; /* sorted by pid */
    size_t n_rows, cap_rows;
    unsigned round;
};

/* Begins a list of processes: those that were not in the one before are forgotten. */
void container_homes_begin(struct container_homes *homes);

/* The path of the cgroup of the container that process `pid` (as seen under `procfs`) runs in, the
 * label `id` of its metrics; NULL if it is in none. Valid until the next list begins. */
const char *container_homes_see(struct container_homes *homes, const char *procfs, pid_t pid);

/* The same for a process of this list; NULL also if it is not in it. */
const char *container_homes_find(const struct container_homes *homes, pid_t pid);

void container_homes_finish(struct container_homes *homes);

/* The name of a cgroup does not prove that it is a container: a user can create cgroups of any name
 * below a service or scope of systemd that was delegated to that user. */

#define CONTAINER_OWNER_UNKNOWN ((uid_t)-1)

/* The user that created the cgroup in the hierarchy at the directory `hierarchy`: the first owner
 * of a cgroup above it other than root, or 0. */
uid_t container_owner(const char *hierarchy, const struct container_path *cgroup);

/* The same for a cgroup that container_id_parse found in `text`, of /proc/<pid>/cgroup. */
uid_t container_owner_in(const char *cgroupfs, const char *text,
                         const struct container_path *cgroup);
