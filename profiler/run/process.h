#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "profiler/run/cgroup.h"

/* A command without a shell in its own process group. The kernel kills it when we die. */

struct run_command {
    const char *const *argv;
    const char *const *env;          /* "NAME=value", added to our environment; NULL: none */
    const char *dir;                 /* working directory; NULL: ours */
    int output_fd;                   /* standard output and error */
    const struct run_cgroup *cgroup; /* NULL: none */
};

/* Starts the command; an error names it. */
int run_child_start(const struct run_command *command, pid_t *ret_pid, struct error *err);

/* Whether a process, found by a name that killed runs have left behind, does not exist. */
bool run_process_is_gone(long pid);

struct run_pids {
    pid_t *pids;
    size_t n_pids, cap_pids;
};

/* A process and its descendants, for use without a cgroup or without its memory controller. Orphans
 * are found by their process group, or as our children if we are their subreaper. */
struct run_tree {
    const char *procfs;
    pid_t root;
    struct run_pids pids;
    struct run_pids others; /* our children that existed before */
    int64_t listed_ns;      /* when /proc was last listed, which takes milliseconds */
    struct buf text;
    double peak_bytes; /* highest sum seen */
};

/* Call it right after the root was started. */
void run_tree_init(struct run_tree *tree, const char *procfs, pid_t root);
void run_tree_finish(struct run_tree *tree); /* accepts a zeroed struct */

/* Sums up the usage of the live processes and of the children that they have reaped. */
void run_tree_read(struct run_tree *tree, struct run_usage *ret_usage);

/* Whether a process was in the tree when it was last listed. */
bool run_tree_has(const struct run_tree *tree, pid_t pid);

/* Signals all processes; returns how many there were. */
size_t run_tree_signal(struct run_tree *tree, int signal);

/* One line of /proc/PID/stat. */
struct run_stat {
    pid_t pid, parent, group;
    char state;
    double cpu_ticks; /* user time, with that of reaped children */
    double system_ticks;
    double rss_pages;
};

/* Parses such a line; the name may contain anything. 0 or -EINVAL. */
int run_stat_parse(const char *text, struct run_stat *ret_stat);
