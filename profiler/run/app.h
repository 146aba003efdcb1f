#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "exporter/core/error.h"
#include "profiler/run/cgroup.h"
#include "profiler/run/plugin.h"
#include "profiler/run/spec.h"

/* The application under test while it runs: a command or a container. */

/* One target as it is run. */
struct run_plan {
    const struct run_target *target;
    const char *name;        /* in the record */
    const char *const *argv; /* the command, or the arguments of the container */
    const char *const *env;  /* that of the target and our variables */
    const char *image;       /* NULL: a command */
    const char *digest;      /* of the image; NULL: unknown */
    const char *dir;         /* working directory of a command; NULL: ours */
    const char *dataset;     /* absolute; NULL: none */
    const struct run_knob *knobs;
    size_t n_knobs;
};

struct run_session;

struct run_app {
    const struct run_app_kind *kind;
    struct run_session *session;
    const struct run_plan *plan;
    int output_fd; /* standard output and error */
    bool ended;
    int exit_code;
    int exit_signal; /* 0: it exited */
    int64_t started_ns, ended_ns;
    const char *peak_source; /* of memory_peak_bytes; NULL before the first reading */
};

struct run_app_kind {
    int (*start)(struct run_app *app, struct error *err);
    /* Signals the application, as Ctrl-C would. */
    void (*signal)(struct run_app *app, int signal);
    /* Kills all remaining processes; returns how many there were. */
    size_t (*kill)(struct run_app *app);
    /* Called when a child of ours has ended. NULL: the processes are not our children. */
    void (*reaped)(struct run_app *app, pid_t pid, int status, const struct rusage *usage);
    void (*usage)(struct run_app *app, struct run_usage *ret_usage);
    /* Whether a process belongs to the application while it runs. */
    bool (*owns)(struct run_app *app, pid_t pid);
    /* Frees an application that has ended. */
    void (*destroy)(struct run_app *app);
};

/* Prepares a container if there is an image, else a command. Session and plan outlive it. */
struct run_app *run_app_create(struct run_session *session, const struct run_plan *plan,
                               int output_fd);
