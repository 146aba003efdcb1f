#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collectors/collector.h"
#include "exporter/loop/loop.h"
#include "exporter/settings/config.h"
#include "profiler/run/app.h"
#include "profiler/run/live.h"
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
