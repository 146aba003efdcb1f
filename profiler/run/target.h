#pragma once

#include <stdbool.h>

#include "profiler/run/session.h"

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
