#pragma once

#include "profiler/run/cgroup.h"

/* What finding a cgroup and making one have in common. */

enum { RUN_CGROUP_MAX_BYTES = 1 << 20 };

/* Opens the hierarchies; to be finished by run_cgroup_finish. */
int run_cgroup_open(struct run_cgroup *cgroup, const char *cgroupfs, struct error *err);

/* Fills in the paths of a process: "self" or its number. */
int run_cgroup_locate(struct run_cgroup *cgroup, const char *procfs, const char *who,
                      struct error *err);

/* Sends SIGKILL to what cgroup.procs of that cgroup lists; returns how many those are. */
size_t run_cgroup_kill_listed(int dirfd);

/* Writes a word to a file of a cgroup. What is not possible shows in the files that are missing;
 * the errno is for those who can help. */
int run_cgroup_write(int dirfd, const char *file, const char *word);
