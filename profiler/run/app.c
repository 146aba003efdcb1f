#include "profiler/run/app.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

#include "profiler/run/engine.h"
#include "profiler/run/process.h"
#include "profiler/run/session.h"

/* Whether a process is in a cgroup that contains this name. A pid of another pid namespace names
 * another process, with another cgroup. */
static bool is_in_cgroup(const struct run_app *app, pid_t pid, const char *name) {
    struct buf path CLEANUP_BUF = {0};
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&path, "%s/%d/cgroup",
               settings_string(app->session->config->settings, "path.procfs"), (int)pid);
    return pid > 0 && file_read(buf_str(&path), &text, NULL) == 0 &&
           strstr(buf_str(&text), name) != NULL;
}

/* ---- a command ---- */

/* A command in its own cgroup, else in its own process group, with us as subreaper. */
struct command_app {
    struct run_app base;
    pid_t pid; /* 0: not started */
    bool has_cgroup;
    struct run_cgroup cgroup;
    struct run_tree tree;
    double reaped_user, reaped_system; /* of the children that have been waited for */
    double max_rss_bytes;
};

static struct command_app *command_of(struct run_app *app) {
    return CONTAINER_OF(app, struct command_app, base);
}

static int command_start(struct run_app *app, struct error *err) {
    struct command_app *command = command_of(app);
    const char *procfs = settings_string(app->session->config->settings, "path.procfs");
    const char *cgroupfs = settings_string(app->session->config->settings, "path.cgroupfs");
    command->has_cgroup = run_cgroup_create(&command->cgroup, procfs, cgroupfs, NULL) == 0;
    struct run_command start = {
        .argv = app->plan->argv,
        .env = app->plan->env,
        .dir = app->plan->dir,
        .output_fd = app->output_fd,
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
    if (command_of(app)->pid > 0) {
        kill(-command_of(app)->pid, signal);
    }
}

static size_t command_kill(struct run_app *app) {
    struct command_app *command = command_of(app);
    return command->pid == 0     ? 0
           : command->has_cgroup ? run_cgroup_kill(&command->cgroup)
                                 : run_tree_signal(&command->tree, SIGKILL);
}

static double seconds(const struct timeval *time) {
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static void command_reaped(struct run_app *app, pid_t pid, int status, const struct rusage *usage) {
    struct command_app *command = command_of(app);
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

/* Without a cgroup: live processes, reaped ones, and the peak of the largest that has ended. */
static void usage_of_tree(struct command_app *command, struct run_usage *usage) {
    run_tree_read(&command->tree, usage);
    usage->user_seconds = plus(usage->user_seconds, command->reaped_user);
    usage->system_seconds = plus(usage->system_seconds, command->reaped_system);
    usage->cpu_seconds = usage->user_seconds + usage->system_seconds;
    usage->memory_peak_bytes = fmax(usage->memory_peak_bytes, command->max_rss_bytes);
}

static void command_usage(struct run_app *app, struct run_usage *ret_usage) {
    struct command_app *command = command_of(app);
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

static bool command_owns(struct run_app *app, pid_t pid) {
    struct command_app *command = command_of(app);
    return command->has_cgroup ? is_in_cgroup(app, pid, command->cgroup.name)
                               : run_tree_has(&command->tree, pid);
}

static void command_destroy(struct run_app *app) {
    struct command_app *command = command_of(app);
    run_tree_finish(&command->tree);
    run_cgroup_finish(&command->cgroup);
    free(command);
}

static const struct run_app_kind command_kind = {
    .start = command_start,
    .signal = command_signal,
    .kill = command_kill,
    .reaped = command_reaped,
    .usage = command_usage,
    .owns = command_owns,
    .destroy = command_destroy,
};

/* ---- a container ---- */

#define POLL_INTERVAL_NS (500 * CLOCK_NS_PER_MS)

/* The exit code of `docker run` if the engine itself fails. */
enum { EXIT_UNKNOWN = 125 };

/* An application in a container. A pidfd of its first process reports its end while the cgroup
 * still exists; without a pidfd the engine is polled. */
struct container_app {
    struct run_app base;
    struct run_engine engine;
    char *id; /* NULL: not created */
    bool has_cgroup;
    struct run_cgroup cgroup;
    struct run_usage usage; /* the latest: the cgroup vanishes with the container */
    struct loop_source pid; /* a pidfd; -1: none */
    int64_t poll_ns;        /* next poll of the engine without a pidfd */
};

static const struct run_usage nothing = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};

static struct container_app *container_of(struct run_app *app) {
    return CONTAINER_OF(app, struct container_app, base);
}

static void read_usage(struct container_app *container) {
    struct run_usage usage;
    if (container->has_cgroup && run_cgroup_read(&container->cgroup, &usage)) {
        container->usage = usage;
        container->base.peak_source = run_cgroup_peak_source(&container->cgroup);
    }
}

static void stop_watching(struct container_app *container) {
    if (container->pid.fd >= 0) {
        loop_remove(container->base.session->loop, &container->pid);
        close(TAKE_FD(container->pid.fd));
    }
}

/* The engine has the exact times and the exit code. */
static void record_end(struct container_app *container) {
    struct run_app *app = &container->base;
    struct run_container_state state;
    app->ended = true;
    app->ended_ns = clock_monotonic_ns();
    app->exit_code = EXIT_UNKNOWN;
    if (run_engine_call(&container->engine, "POST", NULL, NULL, "/containers/%s/wait",
                        container->id) < 0 ||
        run_engine_inspect(&container->engine, container->id, &state, NULL) < 0) {
        return;
    }
    app->exit_code = state.exit_code;
    app->exit_signal = state.exit_signal;
    double seconds = state.finished_seconds - state.started_seconds;
    if (state.started_seconds > 0 && seconds >= 0) {
        app->started_ns = app->ended_ns - (int64_t)(seconds * 1e9);
    }
}

static void pid_ready(struct loop_source *source, uint32_t events) {
    (void)events;
    struct container_app *container = CONTAINER_OF(source, struct container_app, pid);
    read_usage(container); /* at once, before the engine removes the cgroup */
    stop_watching(container);
    record_end(container);
}

static bool container_owns(struct run_app *app, pid_t pid) {
    return is_in_cgroup(app, pid, container_of(app)->id);
}

static void watch_process(struct container_app *container, pid_t pid) {
    struct run_app *app = &container->base;
    const struct settings *settings = app->session->config->settings;
    const char *procfs = settings_string(settings, "path.procfs");
    if (!container_owns(app, pid)) {
        return;
    }
    container->has_cgroup =
        run_cgroup_attach(&container->cgroup, procfs, settings_string(settings, "path.cgroupfs"),
                          pid, NULL) == 0;
    container->pid.fd = (int)syscall(SYS_pidfd_open, pid, 0);
    container->pid.ready = pid_ready;
    if (container->pid.fd >= 0 &&
        loop_add(app->session->loop, &container->pid, EPOLLIN, NULL) < 0) {
        close(TAKE_FD(container->pid.fd));
    }
}

static int create_container(struct container_app *container, struct error *err) {
    const struct run_session *session = container->base.session;
    const struct run_plan *plan = container->base.plan;
    const struct run_target *target = plan->target;
    struct run_owner owner = run_engine_owner();
    struct run_engine_info info;
    run_engine_info(&container->engine, &info);
    bool nvidia = target->gpu != RUN_GPU_NONE && info.has_nvidia;
    struct run_container_spec spec = {
        .owner = owner.text,
        .image = plan->image,
        .argv = plan->argv,
        .env = plan->env,
        .network = session->network,
        .hosts = (const char *const *)session->hosts,
        .socket_dir = session->socket_dir,
        .dataset = plan->dataset,
        .mounts = target->mounts,
        .init = target->init != 0 && info.has_init,
        .nvidia_runtime = nvidia,
        .gpu_request = target->gpu == RUN_GPU_ALL && !nvidia,
    };
    chmod(session->socket_dir, 0755); /* the container may run as another user */
    return run_engine_create(&container->engine, &spec, &container->id, err);
}

static int container_start(struct run_app *app, struct error *err) {
    struct container_app *container = container_of(app);
    struct run_container_state state;
    int r = run_engine_open(&container->engine, app->session->config->settings, err);
    r = r < 0 ? r : create_container(container, err);
    app->started_ns = clock_monotonic_ns();
    r = r < 0 ? r
              : run_engine_call(&container->engine, "POST", NULL, err, "/containers/%s/start",
                                container->id);
    r = r < 0 ? r : run_engine_inspect(&container->engine, container->id, &state, err);
    if (r == 0 && state.running) {
        watch_process(container, state.pid);
    }
    return r;
}

static void container_signal(struct run_app *app, int signal) {
    run_engine_call(&container_of(app)->engine, "POST", NULL, NULL, "/containers/%s/kill?signal=%d",
                    container_of(app)->id, signal);
}

static size_t container_kill(struct run_app *app) {
    if (app->ended || container_of(app)->id == NULL) {
        return 0;
    }
    container_signal(app, SIGKILL);
    return 1;
}

/* Without a pidfd the end is noticed here, a little late. */
static void poll_end(struct container_app *container) {
    struct run_container_state state;
    int64_t now_ns = clock_monotonic_ns();
    if (container->pid.fd >= 0 || container->base.ended || now_ns < container->poll_ns) {
        return;
    }
    container->poll_ns = now_ns + POLL_INTERVAL_NS;
    int r = run_engine_inspect(&container->engine, container->id, &state, NULL);
    if (r == -ENOENT ||
        (r == 0 && !state.running)) { /* it may have been removed by somebody else */
        record_end(container);
    }
}

static void container_usage(struct run_app *app, struct run_usage *ret_usage) {
    struct container_app *container = container_of(app);
    if (!app->ended) {
        read_usage(container);
        poll_end(container);
    }
    *ret_usage = container->usage;
}

static void container_destroy(struct run_app *app) {
    struct container_app *container = container_of(app);
    stop_watching(container);
    if (container->id != NULL) {
        run_engine_copy_output(&container->engine, container->id, app->output_fd);
        run_engine_call(&container->engine, "DELETE", NULL, NULL, RUN_ENGINE_REMOVE, container->id);
    }
    run_cgroup_finish(&container->cgroup);
    run_engine_close(&container->engine);
    free(container->id);
    free(container);
}

static const struct run_app_kind container_kind = {
    .start = container_start,
    .signal = container_signal,
    .kill = container_kill,
    .usage = container_usage,
    .owns = container_owns,
    .destroy = container_destroy,
};

/* ---- both ---- */

struct run_app *run_app_create(struct run_session *session, const struct run_plan *plan,
                               int output_fd) {
    struct run_app *app;
    if (plan->image != NULL) {
        struct container_app *container = mem_zalloc(1, sizeof(*container));
        container->pid.fd = -1;
        container->usage = nothing;
        app = &container->base;
        app->kind = &container_kind;
    } else {
        struct command_app *command = mem_zalloc(1, sizeof(*command));
        app = &command->base;
        app->kind = &command_kind;
    }
    app->session = session;
    app->plan = plan;
    app->output_fd = output_fd;
    return app;
}
