#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "profiler/run/app.h"
#include "profiler/run/child.h"
#include "profiler/run/tree.h"

/* A command in a cgroup of its own; where none can be made, in a process group of its own, and what
 * outlives its parent becomes our child. */
struct command_app {
    struct run_app base;
    pid_t pid; /* 0: not started */
    bool has_cgroup;
    struct run_cgroup cgroup;
    struct run_tree tree;
    double reaped_user, reaped_system; /* of what we have waited for */
    double max_rss_bytes;
};

static struct command_app *of(struct run_app *app) {
    return CONTAINER_OF(app, struct command_app, base);
}

static int command_start(struct run_app *app, struct error *err) {
    struct command_app *command = of(app);
    const char *procfs = settings_string(app->config.settings, "path.procfs");
    const char *cgroupfs = settings_string(app->config.settings, "path.cgroupfs");
    command->has_cgroup = run_cgroup_create(&command->cgroup, procfs, cgroupfs, NULL) == 0;
    struct run_command start = {
        .argv = app->config.argv,
        .env = app->config.env,
        .dir = app->config.dir,
        .output_fd = app->config.output_fd,
        .cgroup = command->has_cgroup ? &command->cgroup : NULL,
    };
    app->started_ns = clock_monotonic_ns();
    int r = run_child_start(&start, &command->pid, err);
    if (r == 0) {
        run_tree_init(&command->tree, procfs, command->pid);
    }
    return r;
}

static void command_signal(struct run_app *app, int signal) {
    if (of(app)->pid > 0) {
        kill(-of(app)->pid, signal);
    }
}

static size_t command_kill(struct run_app *app) {
    struct command_app *command = of(app);
    if (command->pid == 0) {
        return 0;
    }
    return command->has_cgroup ? run_cgroup_kill(&command->cgroup)
                               : run_tree_signal(&command->tree, SIGKILL);
}

static double seconds(const struct timeval *time) {
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static void command_reaped(struct run_app *app, pid_t pid, int status, const struct rusage *usage) {
    struct command_app *command = of(app);
    double rss = (double)usage->ru_maxrss * 1024;
    command->reaped_user += seconds(&usage->ru_utime);
    command->reaped_system += seconds(&usage->ru_stime);
    command->max_rss_bytes = rss > command->max_rss_bytes ? rss : command->max_rss_bytes;
    if (pid == command->pid) {
        app->ended = true;
        app->ended_ns = clock_monotonic_ns();
        app->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        app->exit_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    }
}

static double plus(double a, double b) {
    return isnan(a) ? b : a + b;
}

/* Without a cgroup: what lives, what we have reaped, and the largest process that has ended. */
static void usage_of_tree(struct command_app *command, struct run_usage *usage) {
    run_tree_read(&command->tree, usage);
    usage->user_seconds = plus(usage->user_seconds, command->reaped_user);
    usage->system_seconds = plus(usage->system_seconds, command->reaped_system);
    usage->cpu_seconds = usage->user_seconds + usage->system_seconds;
    usage->memory_peak_bytes = fmax(usage->memory_peak_bytes, command->max_rss_bytes);
}

static void command_usage(struct run_app *app, struct run_usage *ret_usage) {
    struct command_app *command = of(app);
    struct run_usage tree;
    if (!command->has_cgroup || !run_cgroup_read(&command->cgroup, ret_usage)) {
        usage_of_tree(command, ret_usage);
        app->peak_source = "rusage";
        return;
    }
    app->peak_source = run_cgroup_peak_source(&command->cgroup);
    if (app->peak_source == NULL) { /* v2 without its memory controller */
        usage_of_tree(command, &tree);
        ret_usage->memory_bytes = tree.memory_bytes;
        ret_usage->memory_peak_bytes = tree.memory_peak_bytes;
        app->peak_source = "rusage";
    }
}

static void command_destroy(struct run_app *app) {
    struct command_app *command = of(app);
    run_tree_finish(&command->tree);
    run_cgroup_finish(&command->cgroup);
    free(command);
}

static const struct run_app_kind kind = {
    .start = command_start,
    .signal = command_signal,
    .kill = command_kill,
    .reaped = command_reaped,
    .usage = command_usage,
    .destroy = command_destroy,
};

struct run_app *run_app_command_create(void) {
    struct command_app *command = calloc(1, sizeof(*command));
    if (command == NULL) {
        return NULL;
    }
    command->base.kind = &kind;
    return &command->base;
}
