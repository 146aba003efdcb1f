#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collectors/collector.h"
#include "exporter/core/error.h"
#include "exporter/loop/loop.h"
#include "exporter/settings/config.h"
#include "profiler/run/app.h"
#include "profiler/run/plugin.h"
#include "profiler/run/probe.h"
#include "profiler/run/progress.h"
#include "profiler/run/record.h"
#include "profiler/run/spec.h"

/* What all runs of one call have in common: the loop, the probes, the record, and taking samples
 * while anything is waited for. */
struct run_session {
    const struct collector *const *collectors;
    const struct run_spec *spec;
    const char *out_dir;
    struct loop *loop;
    struct config *config;
    struct run_probe *probe;
    struct run_record record;
    struct loop_source signals; /* a signalfd */
    char *socket_dir;           /* of the plugin channel */
    int socket_dir_fd;          /* a lock on it, for as long as we live */

    struct run_app *app;       /* NULL: none runs */
    struct run_plugin *plugin; /* NULL: none can speak */
    struct run_services *services;

    bool sampling;
    int64_t next_ns; /* when the next sample is due */
    bool pending;    /* a sample waits for its probes */
    struct run_live live;
    int64_t live_ns;      /* of its CPU time */
    double start_celsius; /* before the first run of the target; NAN: not known */
    struct run_progress progress;
    unsigned n_interrupts;
    unsigned n_heeded;  /* of those, while an application is being stopped */
    bool given_up;      /* another run would fail for the same reason */
    struct error error; /* of the record; "" while it can be written */
};

/* Prepares everything; `session` has `collectors`, `spec` and `out_dir`. -EINVAL and its kin where
 * the environment does not allow a run. To be finished in any case. */
int run_session_init(struct run_session *session, struct error *err);

/* False where something hangs and the process should leave by _exit. */
bool run_session_finish(struct run_session *session);

/* Takes samples until `done` says so (NULL: never) or that moment has come. */
void run_session_wait(struct run_session *session, int64_t until_ns,
                      bool (*done)(struct run_session *session));

/* Takes a sample at once and writes it. */
void run_session_sample(struct run_session *session);

/* Begins a phase; what is pending is written before. */
void run_session_phase(struct run_session *session, const char *phase);

/* Whether nothing more is to be run. */
bool run_session_is_over(const struct run_session *session);

/* Notes that a line could not be written: the first such error is kept. */
void run_session_check(struct run_session *session, int result, const struct error *err);

/* One target of a session: its baseline, its runs with warm-up and repeats, and what stops them. */

struct run_plan {
    const struct run_target *target;
    const char *name;        /* of the target in the record */
    const char *const *argv; /* all words of the command line, or of the container's */
    const char *const *env;  /* what the target says and what we add */
    const char *image;       /* NULL: a command */
    const char *digest;      /* of the image; NULL: not known */
    const char *dir;         /* where a command runs; NULL: here */
    const char *dataset;     /* absolute; NULL: none */
    const struct run_knob *knobs;
    size_t n_knobs;
};

struct run_tally {
    unsigned n_runs;
    unsigned n_failed;
    bool misused; /* knobs that the plugin does not have, or values that they cannot */
};

/* Runs it as often as it says, or until the session is over. */
void run_target_profile(struct run_session *session, const struct run_plan *plan,
                        struct run_tally *tally);

/* What the application needs beside itself, such as a server that plays a video: started before it,
 * waited for until ready, ended after it. */
struct run_services;

struct run_session;

/* Starts them one after the other; each is ready before the next starts. `dir` is where they run
 * (NULL: here); what they print goes to files in the folder of the session. */
int run_services_start(struct run_session *session, const char *dir, struct error *err);

/* Ends them, if there are any. */
void run_services_stop(struct run_session *session);

/* A child of ours has ended; whether it was one of them. */
bool run_services_reaped(struct run_services *services, pid_t pid);

/* Whether something listens at "8090" (of this machine) or "host:8090". */
bool run_service_listens(const char *address);

/* Writes the first line of the record: the application, the machine, the settings, the gates. */
void run_environment_write(struct run_session *session, const char *image,
                           const char *image_digest);

/* The commit that is checked out in the folder `dir` or above it, from the files of git; the caller
 * frees it. NULL: none. */
char *run_environment_commit(const char *dir);
