#pragma once

#include <sys/types.h>

#include "collectors/cgroup/container_path.h"

/* The container that a process runs in, for everything that knows processes and wants to name
 * containers: GPU clients, peers on a socket. */

/* Finds it in the text of /proc/<pid>/cgroup: the first hierarchy that knows one. False where the
 * process is in none. The result points into `text`. */
bool container_id_parse(const char *text, struct container_path *ret_path);

/* The path of the cgroup of the container that process `pid` (as seen under `procfs`) is in: the
 * label `id` of its metrics. The caller frees it. -ENOENT where the process is in no container,
 * -ESRCH where there is no such process. */
int container_cgroup_of_pid(const char *procfs, pid_t pid, char **ret_path);
