#include "profiler/run/session.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectors/source/entries.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/file.h"
#include "exporter/settings/settings.h"
#include "profiler/run/cgroup.h"
#include "profiler/run/engine.h"
#include "profiler/run/process.h"

enum { FIRST_ANSWER_MS = 3000 };

bool run_session_interrupted(struct run_session *session) {
    return session->n_interrupts > 0;
}

bool run_session_is_over(const struct run_session *session) {
    return session->n_interrupts > 0 || session->given_up || session->record.error.text[0] != '\0';
}

/* ---- signals ---- */

/* Reaps orphans too: we are the subreaper of our descendants. */
static void reap(struct run_session *session) {
    for (;;) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid <= 0) {
            return;
        }
        if (!run_services_reaped(session, pid) && session->app != NULL &&
            session->app->kind->reaped != NULL) {
            session->app->kind->reaped(session->app, pid, status, &usage);
        }
    }
}

static void signals_ready(struct loop_source *source, uint32_t events) {
    (void)events;
    struct run_session *session = CONTAINER_OF(source, struct run_session, signals);
    struct signalfd_siginfo info;
    while (read(source->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD) {
            reap(session);
        } else {
            session->n_interrupts++;
        }
    }
}

/* A signalfd would deliver a signal that nohup has made us ignore. */
static bool is_ignored(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static int take_signals(struct run_session *session, struct error *err) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (!is_ignored(SIGHUP)) {
        sigaddset(&set, SIGHUP);
    }
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* if ignored, children would not become zombies to wait for */
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    session->signals = (struct loop_source){
        .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
        .ready = signals_ready,
    };
    if (session->signals.fd < 0) {
        return error_set(err, -errno, "signalfd: %m");
    }
    return loop_add(session->loop, &session->signals, EPOLLIN, err);
}

/* ---- settings ---- */

/* The daemon's settings, from its environment variables and defaults, with our own plugin channel.
 * The channel asks the engine of DOCKER_HOST for names of containers. */
static int load_config(struct run_session *session, struct error *err) {
    struct buf socket CLEANUP_BUF = {0};
    struct buf rate CLEANUP_BUF = {0};
    struct buf engine CLEANUP_BUF = {0};
    int64_t hz = 1000 / session->spec->interval_ms;
    buf_printf(&socket, "--push.socket=%s/push.sock", session->socket_dir);
    buf_printf(&rate, "--sample.hz=%d", (int)(hz < 1 ? 1 : hz));
    const char *host = run_engine_host();
    buf_printf(&engine, "--collector.container.docker-socket=%s", host != NULL ? host : "");
    char *argv[] = {"run",
                    socket.data,
                    rate.data,
                    "--push.table=",
                    "--push.state-file=",
                    "--push.pywaggle-log=",
                    "--push.ttl=0",
                    "--collector.jetson.processes",
                    "--collector.nvml.processes",
                    host != NULL ? engine.data : NULL,
                    NULL};
    struct config_sources sources = {
        .variables = environ,
        .argv = argv,
        .argc = ARRAY_LEN(argv) - (host != NULL ? 1 : 2),
    };
    struct problems problems CLEANUP_PROBLEMS = {0};
    int r = config_load(session->collectors, &sources, &session->config, &problems);
    return r < 0 ? error_set(err, r, "%s", problems.n_lines > 0 ? problems.lines[0] : "settings")
                 : 0;
}

#define DIR_PREFIX "waap-run-"

/* Removes the folders that killed runs have left behind. A live run holds a lock on its folder; one
 * that has not locked it yet is recognised by its pid. */
static void remove_stale(const char *tmp) {
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, tmp, DIR_PREFIX);
    for (size_t i = 0; i < entries.n_names; i++) {
        if (!run_process_is_gone(strtol(entries.names[i] + strlen(DIR_PREFIX), NULL, 10))) {
            continue;
        }
        char *path CLEANUP_FREE = file_path_join(tmp, entries.names[i]);
        int fd CLEANUP_CLOSE = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            unlinkat(fd, "push.sock", 0);
            rmdir(path);
        }
    }
}

/* Not in the folder of the record, since the path of a socket has at most 107 bytes. */
static int make_socket_dir(struct run_session *session, struct error *err) {
    const char *tmp = getenv("TMPDIR");
    tmp = tmp != NULL && tmp[0] != '\0' && strlen(tmp) < 64 ? tmp : "/tmp";
    remove_stale(tmp);
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/" DIR_PREFIX "%d.XXXXXX", tmp, (int)getpid());
    session->socket_dir = buf_take(&path);
    if (mkdtemp(session->socket_dir) == NULL) {
        int code = -errno;
        error_set(err, code, "make %s/" DIR_PREFIX "…: %m (see TMPDIR)", tmp);
        free(TAKE(session->socket_dir));
        return code;
    }
    session->socket_dir_fd = open(session->socket_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    flock(session->socket_dir_fd, LOCK_EX | LOCK_NB);
    return 0;
}

static bool probes_answered(struct run_session *session) {
    return !run_probe_is_busy(session->probe);
}

void run_session_probe(struct run_session *session, int64_t limit_ms) {
    int64_t now_ns = clock_monotonic_ns();
    run_probe_start(session->probe, true, now_ns);
    run_session_wait(session, now_ns + limit_ms * CLOCK_NS_PER_MS, probes_answered);
    run_probe_mark(session->probe);
}

int run_session_init(struct run_session *session, struct error *err) {
    session->live = RUN_LIVE_NONE;
    session->start_celsius = NAN;
    session->progress =
        (struct run_progress){.on = isatty(STDERR_FILENO) == 1, .target = "", .phase = ""};
    int r = loop_create(&session->loop, err);
    r = r < 0 ? r : take_signals(session, err);
    r = r < 0 ? r : make_socket_dir(session, err);
    r = r < 0 ? r : load_config(session, err);
    r = r < 0 ? r
              : run_probe_create(session->loop, session->config, session->collectors,
                                 session->spec->interval_ms, &session->probe, err);
    if (r == 0) {
        run_session_probe(session, FIRST_ANSWER_MS);
    }
    return r;
}

bool run_session_finish(struct run_session *session) {
    bool clean = run_probe_destroy(session->probe);
    if (session->config != NULL) {
        const struct settings *settings = session->config->settings;
        run_cgroup_restore(settings_string(settings, "path.procfs"),
                           settings_string(settings, "path.cgroupfs"));
    }
    run_record_close(&session->record);
    if (session->socket_dir != NULL) {
        rmdir(session->socket_dir);
        close(session->socket_dir_fd);
        free(TAKE(session->socket_dir));
    }
    if (!clean) {
        return false;
    }
    config_unref(session->config);
    if (session->signals.fd >= 0) {
        close(session->signals.fd);
    }
    loop_destroy(session->loop);
    return true;
}

/* ---- samples ---- */

static void note_cpu(struct run_session *session, double cpu_seconds, int64_t now_ns) {
    struct run_live *live = &session->live;
    double passed = (double)(now_ns - session->live_ns) / 1e9;
    if (passed > 0.2) { /* shorter intervals would show clock ticks */
        live->cpu_ratio = (cpu_seconds - live->cpu_seconds) / passed;
        live->cpu_seconds = cpu_seconds;
        session->live_ns = now_ns;
    }
}

static void write_usage(struct run_session *session, int64_t now_ns) {
    static const struct {
        size_t offset;
        struct run_series series;
        bool momentary; /* meaningless after the end of the application */
    } rows[] = {
        {offsetof(struct run_usage, cpu_seconds),
         {"cpu.seconds", RECORD_COUNTER, "s", "CPU time of the application"}},
        {offsetof(struct run_usage, user_seconds),
         {"cpu.user_seconds", RECORD_COUNTER, "s", "CPU time in the application itself"}},
        {offsetof(struct run_usage, system_seconds),
         {"cpu.system_seconds", RECORD_COUNTER, "s", "CPU time in the kernel"}},
        {offsetof(struct run_usage, throttled_seconds),
         {"cpu.throttled_seconds", RECORD_COUNTER, "s", "Time kept from running by a quota"}},
        {offsetof(struct run_usage, memory_bytes),
         {"memory.bytes", RECORD_GAUGE, "B", "Memory of the application, without idle cache"},
         true},
        {offsetof(struct run_usage, memory_peak_bytes),
         {"memory.peak_bytes", RECORD_GAUGE, "B", "Most memory that it ever had"}},
        {offsetof(struct run_usage, read_bytes),
         {"io.read_bytes", RECORD_COUNTER, "B", "Read from block devices"}},
        {offsetof(struct run_usage, written_bytes),
         {"io.written_bytes", RECORD_COUNTER, "B", "Written to block devices"}},
        {offsetof(struct run_usage, processes),
         {"processes", RECORD_GAUGE, "", "Processes or threads of the application"},
         true},
    };
    struct run_usage usage;
    session->app->kind->usage(session->app, &usage);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double value = *(const double *)((const char *)&usage + rows[i].offset);
        if (!rows[i].momentary || !session->app->ended) {
            run_record_value(&session->record, &rows[i].series, value);
        }
    }
    session->live.memory_bytes = usage.memory_bytes;
    note_cpu(session, usage.cpu_seconds, now_ns);
}

static void begin_sample(struct run_session *session, bool all, int64_t now_ns) {
    run_record_begin_sample(&session->record, now_ns);
    if (session->app != NULL) {
        write_usage(session, now_ns);
    }
    if (session->plugin != NULL && (session->spec->metrics & RUN_METRICS_APP) != 0) {
        run_plugin_write(session->plugin, &session->record, &session->live);
    }
    run_probe_start(session->probe, all, now_ns);
    session->pending = true;
}

/* Probes that are still busy when the next sample is due are missing in this one. */
static void end_sample(struct run_session *session) {
    if (session->pending) {
        session->pending = false;
        struct run_app *app = session->app != NULL && !session->app->ended ? session->app : NULL;
        run_probe_write(session->probe, session->spec->metrics, app, &session->record,
                        &session->live);
        run_record_end_sample(&session->record);
    }
}

static void write_lost(struct run_session *session, int64_t n_lost, int64_t now_ns) {
    run_record_begin(&session->record, "lost");
    run_record_moment(&session->record, now_ns);
    run_record_number(&session->record, "samples", (double)n_lost);
    run_record_text(&session->record, "reason", "late");
    run_record_end(&session->record);
}

static void take_due_sample(struct run_session *session, int64_t now_ns) {
    int64_t interval_ns = session->spec->interval_ms * CLOCK_NS_PER_MS;
    int64_t n_lost = (now_ns - session->next_ns) / interval_ns;
    end_sample(session);
    if (n_lost > 0) {
        write_lost(session, n_lost, now_ns);
    }
    begin_sample(session, false, now_ns);
    session->next_ns += (n_lost + 1) * interval_ns;
}

void run_session_wait(struct run_session *session, int64_t until_ns,
                      bool (*done)(struct run_session *session)) {
    int64_t now_ns = clock_monotonic_ns();
    while (now_ns < until_ns && (done == NULL || !done(session))) {
        if (session->sampling && now_ns >= session->next_ns) {
            take_due_sample(session, now_ns);
        }
        int64_t due_ns =
            session->sampling && session->next_ns < until_ns ? session->next_ns : until_ns;
        int64_t wait_ms = (due_ns - now_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
        loop_turn(session->loop, wait_ms < 0 ? 0 : wait_ms);
        if (session->pending && !run_probe_is_busy(session->probe)) {
            end_sample(session);
        }
        now_ns = clock_monotonic_ns();
        run_progress_show(&session->progress, &session->live, now_ns);
    }
}

void run_session_sample(struct run_session *session) {
    int64_t now_ns = clock_monotonic_ns();
    int64_t interval_ns = session->spec->interval_ms * CLOCK_NS_PER_MS;
    end_sample(session);
    begin_sample(session, true, now_ns);
    session->sampling = true;
    session->next_ns = now_ns + interval_ns;
    run_session_wait(session, session->next_ns - 1, probes_answered);
    end_sample(session);
}

void run_session_phase(struct run_session *session, const char *phase) {
    end_sample(session);
    session->progress.phase = phase;
    session->progress.phase_ns = clock_monotonic_ns();
    run_record_phase(&session->record, phase);
}
