#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "collectors/cgroup/tree.h"
#include "exporter/core/error.h"

/* What an application has used, all its processes together. NAN: not known. */
struct run_usage {
    double cpu_seconds; /* user and system */
    double user_seconds;
    double system_seconds;
    double throttled_seconds; /* kept from running by a quota */
    double memory_bytes;
    double memory_peak_bytes; /* as the kernel counts it */
    double read_bytes;        /* from block devices */
    double written_bytes;
    double processes;
};

/* The cgroup of the application: one of our own for a command, the engine's for a container. In v1
 * it is a directory in each hierarchy. */
struct run_cgroup {
    struct cgroup_tree tree;
    struct cgroup_place place;
    struct cgroup_hot hot;
    struct cgroup_stats stats;
    struct buf scratch;
    char *paths[CGROUP_MAX_HIERARCHIES]; /* from the root of each hierarchy; NULL: not there */
    bool ours;                           /* to be removed */
    double user_seconds, system_seconds; /* as last told */
};

/* Makes a cgroup below our own one, wherever that is possible, and removes what earlier runs that
 * were killed have left there. -ENODEV, -EACCES, … where not even one can be made. */
int run_cgroup_create(struct run_cgroup *cgroup, const char *procfs, const char *cgroupfs,
                      struct error *err);

/* Undoes what making them did to the cgroup that we are in: at the end, when all are finished. */
void run_cgroup_go_home(const char *procfs, const char *cgroupfs);

/* Finds the one in which that process is. */
int run_cgroup_attach(struct run_cgroup *cgroup, const char *procfs, const char *cgroupfs,
                      pid_t pid, struct error *err);

/* Removes what was made; everything in it has to have ended. Accepts zeroes. */
void run_cgroup_finish(struct run_cgroup *cgroup);

/* Puts the calling process there: between fork and exec. 0 or a negative errno. */
int run_cgroup_enter(const struct run_cgroup *cgroup);

/* Reads what its processes have used so far; false where nothing is left to read. */
bool run_cgroup_read(struct run_cgroup *cgroup, struct run_usage *ret_usage);

/* Sends SIGKILL to all of its processes; returns how many there were. */
size_t run_cgroup_kill(struct run_cgroup *cgroup);

/* The file that tells the peak of memory: "memory.peak" or "max_usage"; NULL: none does. */
const char *run_cgroup_peak_source(const struct run_cgroup *cgroup);

/* The path of a process in the hierarchy in directory `name` ("memory", "cpu,cpuacct"; NULL: the
 * one of v2), from the text of /proc/PID/cgroup. Its length goes to `*ret_len`; NULL: none. */
const char *run_cgroup_find_path(const char *text, const char *name, size_t *ret_len);
