#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collectors/collector.h"
#include "exporter/core/error.h"
#include "exporter/loop/loop.h"
#include "exporter/settings/config.h"
#include "profiler/run/app.h"
#include "profiler/run/engine.h"
#include "profiler/run/plugin.h"
#include "profiler/run/probe.h"
#include "profiler/run/progress.h"
#include "profiler/run/record.h"
#include "profiler/run/spec.h"

/* A service that runs: a process or a container. */
struct run_service_state {
    pid_t pid;       /* 0: none, or has ended */
    char *container; /* its id; NULL: none */
};

/* What all runs of a call share. Samples are taken while the session waits. */
struct run_session {
    const struct collector *const *collectors;
    const struct run_spec *spec;
    const char *out_dir;
    struct loop *loop;
    struct config *config;
    struct run_probe *probe;
    struct run_record record;
    struct loop_source signals; /* a signalfd */
    char *socket_dir;           /* for the socket of the plugin channel */
    int socket_dir_fd;          /* holds a lock on it */

    struct run_app *app;                /* NULL: none runs */
    struct run_plugin *plugin;          /* NULL: none */
    struct run_service_state *services; /* those of the spec; NULL: not started */
    struct run_engine engine;           /* of their containers */
    char *network;                      /* of their containers; NULL: the host's */
    char **hosts;                       /* "name:address" of each there; NULL: none */

    bool sampling;
    int64_t next_ns; /* when the next sample is due */
    bool pending;    /* a sample waits for its probes */
    struct run_live live;
    int64_t live_ns;      /* of its CPU time */
    double start_celsius; /* before the first run of the target; NAN: not known */
    struct run_progress progress;
    unsigned n_interrupts;
    unsigned n_handled; /* of those, when stopping began */
    bool given_up;      /* the next run would fail for the same reason */
};

/* Prepares a session whose `collectors`, `spec` and `out_dir` are set. Finish it in any case. */
int run_session_init(struct run_session *session, struct error *err);

/* False if a thread hangs and the process must end by _exit. */
bool run_session_finish(struct run_session *session);

/* Takes samples until `done` returns true (NULL: never) or until the deadline. */
void run_session_wait(struct run_session *session, int64_t until_ns,
                      bool (*done)(struct run_session *session));

/* Reads the probes before the start of an application; waits at most `limit_ms`. */
void run_session_probe(struct run_session *session, int64_t limit_ms);

/* Takes a sample at once and writes it. */
void run_session_sample(struct run_session *session);

/* Begins a phase, after writing a pending sample. */
void run_session_phase(struct run_session *session, const char *phase);

/* Whether the user has interrupted. */
bool run_session_interrupted(struct run_session *session);

/* Whether no further run should start. */
bool run_session_is_over(const struct run_session *session);

/* One target of a session: its baseline and its runs, with warm-up and repeats. */

struct run_tally {
    unsigned n_runs;
    unsigned n_failed;
    bool misused; /* --knob names an unknown knob or an invalid value */
};

/* Runs the target as often as it specifies, or until the session is over. */
void run_target_profile(struct run_session *session, const struct run_plan *plan,
                        struct run_tally *tally);

/* Programs that the application needs, such as a video server, which run around it. */
/* Starts the services one by one; each is ready before the next starts. `dir` is their working
 * directory (NULL: ours); their output goes to files in the folder of the session. */
int run_services_start(struct run_session *session, const char *dir, struct error *err);

/* Stops the services, if any. */
void run_services_stop(struct run_session *session);

/* Called when a child of ours has ended; returns whether it was a service. */
bool run_services_reaped(struct run_session *session, pid_t pid);

/* Writes the first line of the record: the application, the machine, the settings, the gates. */
void run_environment_write(struct run_session *session, const char *image,
                           const char *image_digest);

/* The commit checked out in `dir` or above, from the files of git, or NULL; the caller frees it. */
char *run_environment_commit(const char *dir);
