#pragma once

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

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
