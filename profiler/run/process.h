#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "profiler/run/cgroup.h"

/* A command that we run: without a shell, in a process group of its own and, where there is one, in
 * a cgroup. It is killed when we are. */

struct run_command {
    const char *const *argv;
    const char *const *env;          /* "NAME=value", besides our own environment; NULL: none */
    const char *dir;                 /* where it runs; NULL: here */
    int output_fd;                   /* of what it prints */
    const struct run_cgroup *cgroup; /* NULL: none */
};

/* Starts it; the error of a command that cannot be run names it. */
int run_child_start(const struct run_command *command, pid_t *ret_pid, struct error *err);

struct run_pids {
    pid_t *pids;
    size_t n_pids, cap_pids;
};

/* The processes that come from one: where no cgroup can be made, and for what a cgroup without its
 * memory controller does not tell. Those that a process left behind when it ended are found by
 * their process group, or as our own children, if we adopt orphans. */
struct run_tree {
    const char *procfs;
    pid_t root;
    struct run_pids pids;
    struct run_pids others; /* children of ours that were there before */
    int64_t listed_ns;      /* when all processes were looked at: that takes milliseconds */
    struct buf text;
    double peak_bytes; /* of what was seen */
};

/* Right after the root was started. */
void run_tree_init(struct run_tree *tree, const char *procfs, pid_t root);
void run_tree_finish(struct run_tree *tree); /* accepts zeroes */

/* Adds up what those that live have used, and what they have reaped. */
void run_tree_read(struct run_tree *tree, struct run_usage *ret_usage);

/* Sends a signal to all; returns how many there were. */
size_t run_tree_signal(struct run_tree *tree, int signal);

/* One line of /proc/PID/stat. */
struct run_stat {
    pid_t pid, parent, group;
    char state;
    double cpu_ticks; /* its own and of children it has waited for, user */
    double system_ticks;
    double rss_pages;
};

/* Reads such a line, in which the name may hold anything. 0 or -EINVAL. */
int run_stat_parse(const char *text, struct run_stat *ret_stat);
