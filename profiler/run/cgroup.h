#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "collectors/cgroup/tree.h"
#include "exporter/core/error.h"

/* Resource usage of all processes of an application. NAN: unknown. */
struct run_usage {
    double cpu_seconds; /* user and system */
    double user_seconds;
    double system_seconds;
    double throttled_seconds; /* by a quota */
    double memory_bytes;
    double memory_peak_bytes;
    double read_bytes; /* from block devices */
    double written_bytes;
    double processes;
};

/* The cgroup of the application: created by us for a command, by the engine for a container. In v1
 * it has a directory in each hierarchy. */
struct run_cgroup {
    struct cgroup_tree tree;
    struct cgroup_place place;
    struct cgroup_hot hot;
    struct cgroup_stats stats;
    struct buf scratch;
    char *paths[CGROUP_MAX_HIERARCHIES]; /* from the root of each hierarchy; NULL: not there */
    bool ours;                           /* created by us; removed at the end */
    char name[64];                       /* of one that we have created */
    double user_seconds, system_seconds; /* last reported */
};

/* Creates a cgroup below our own in every hierarchy that allows it, and removes those that killed
 * runs have left behind. -ENODEV, -EACCES, … if no hierarchy allows it. */
int run_cgroup_create(struct run_cgroup *cgroup, const char *procfs, const char *cgroupfs,
                      struct error *err);

/* Undoes the changes of run_cgroup_create to our own cgroup. Call it when all are finished. */
void run_cgroup_restore(const char *procfs, const char *cgroupfs);

/* Opens the cgroup of a process. */
int run_cgroup_attach(struct run_cgroup *cgroup, const char *procfs, const char *cgroupfs,
                      pid_t pid, struct error *err);

/* Removes the cgroup if we created it; its processes must have ended. Accepts a zeroed struct. */
void run_cgroup_finish(struct run_cgroup *cgroup);

/* Moves the calling process into the cgroup, between fork and exec. 0 or a negative errno. */
int run_cgroup_enter(const struct run_cgroup *cgroup);

/* Reads the usage so far; false if no file is left to read. */
bool run_cgroup_read(struct run_cgroup *cgroup, struct run_usage *ret_usage);

/* Sends SIGKILL to all processes; returns how many there were. */
size_t run_cgroup_kill(struct run_cgroup *cgroup);

/* The file that has the peak of memory: "memory.peak" or "max_usage"; NULL: none. */
const char *run_cgroup_peak_source(const struct run_cgroup *cgroup);

/* The path of a controller's hierarchy (0: v2) in the text of /proc/PID/cgroup, or NULL. */
char *run_cgroup_find_path(const char *text, unsigned controllers);
