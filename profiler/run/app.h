#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "exporter/core/error.h"
#include "exporter/loop/loop.h"
#include "exporter/settings/settings.h"
#include "profiler/run/cgroup.h"

/* The application under test while it runs: a command or a container. */

/* What to start. All is borrowed and outlives the application. */
struct run_app_config {
    struct loop *loop;
    const struct settings *settings;
    const char *image; /* NULL: a command */
    const char *const *argv;
    const char *const *env;
    const char *dir;        /* where a command runs; NULL: here */
    const char *dataset;    /* absolute path; NULL: none */
    const char *socket_dir; /* with the socket of the plugin channel in it */
    int output_fd;          /* for what it prints */
    int64_t gpu;            /* enum run_gpu */
};

struct run_app {
    const struct run_app_kind *kind;
    struct run_app_config config;
    bool ended;
    int exit_code;
    int exit_signal; /* 0: it left by itself */
    int64_t started_ns, ended_ns;
    const char *peak_source; /* of memory_peak_bytes, once it was read */
};

struct run_app_kind {
    int (*start)(struct run_app *app, struct error *err);
    /* Signals the application, as Ctrl-C would. */
    void (*signal)(struct run_app *app, int signal);
    /* Kills whatever is left of it; returns how many processes there still were. */
    size_t (*kill)(struct run_app *app);
    /* A child of ours has ended; NULL: its processes are not our children. */
    void (*reaped)(struct run_app *app, pid_t pid, int status, const struct rusage *usage);
    void (*usage)(struct run_app *app, struct run_usage *ret_usage);
    /* Frees it, after its end. */
    void (*destroy)(struct run_app *app);
};

/* Prepares a container if there is an image, else a command; nothing runs yet. */
struct run_app *run_app_create(const struct run_app_config *config);
void run_app_destroy(struct run_app *app); /* accepts NULL */
