#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "profiler/analysis/gate.h"
#include "profiler/analysis/measure.h"
#include "profiler/record/read.h"

/* A record, read once and condensed, for all reports but those that list samples, with all results.
 * Its size depends on the number of series and runs, not on the length of the record. */
struct profile {
    struct record *record;
    struct json_t *run; /* the line of kind "run" */
    struct profile_target *targets;
    size_t n_targets;
    struct profile_histogram *histograms; /* in the order of their first buckets */
    size_t n_histograms;
    size_t n_samples;
    double last_t;
    bool finished;                  /* the record is complete */
    bool interrupted;               /* the user interrupted it */
    size_t n_gates, n_failed_gates; /* of all targets, without those that need a baseline */
    size_t n_failed_runs;
};

/* Derived columns; the columns of the record follow, in the order of the series. */
enum {
    DERIVED_CPU,    /* CPU seconds, user and system */
    DERIVED_ENERGY, /* joules: counted, or integrated from the watts */
    N_DERIVED,
};

/* A histogram of the application: the buckets of one name and one set of labels without `le`. */
struct profile_histogram {
    char *key; /* `app.inference_seconds{stage="a"}` */
    size_t name_len;
    struct profile_bucket {
        double le;
        int column;
    } * buckets; /* by ascending bound */
    size_t n_buckets;
    int count, sum; /* columns; -1: not recorded */
};

struct profile_target {
    char *name;
    struct json_t *object; /* its line; NULL: none */
    struct profile_run *runs;
    size_t n_runs;
    struct profile_pool *pools; /* by column */
    size_t n_pools;
    struct measures measures;
    struct gate *gates;
    size_t n_gates;
    size_t n_measured;    /* runs that were measured */
    size_t n_failed_runs; /* of all runs, with warm-up */
};

/* All measured samples of a column over all runs; of counters the rates in windows of a second. */
struct profile_pool {
    struct moments moments;
    struct quantiles quantiles;
};

struct profile_phase {
    enum record_phase phase;
    double t;
};

enum { PROFILE_MAX_PHASES = 8 };

struct profile_run {
    unsigned number;
    double began_at; /* Unix time of its first phase */
    struct profile_phase phases[PROFILE_MAX_PHASES];
    size_t n_phases;
    bool measured;     /* has a phase "run": no warm-up */
    double measured_s; /* length of that phase so far */
    double end_t;
    struct json_t *end; /* its last line; NULL: none */
    size_t n_samples;
    size_t n_lost;
    struct profile_column *columns;
    size_t n_columns;
    double idle_joules, idle_s; /* during the baseline */
    double watts_t, watts;      /* the previous sample, to integrate */
    double joules;              /* integrated */
};

/* One column in one run. */
struct profile_column {
    size_t n; /* samples in the measured phase */
    double t, value;
    double first_t;
    double grown;   /* growth of a counter in these samples */
    double initial; /* of that, the first value of a counter of the application */
    double window_t, window_grown;
    struct moments moments; /* of gauges, or of the rates of counters */
    struct timeline timeline;
};

/* Reads a samples.jsonl and evaluates the gates that need no baseline. */
int profile_read(const char *path, struct profile **ret_profile, struct error *err);

/* Accepts NULL. */
void profile_destroy(struct profile *profile);

static inline void profile_cleanup(struct profile **profile) {
    profile_destroy(*profile);
}
#define CLEANUP_PROFILE CLEANUP(profile_cleanup)

/* The number of columns, with the derived ones. */
int profile_n_columns(const struct profile *profile);

/* The series of a column that is not derived. */
const struct record_series *profile_series(const struct profile *profile, int index);

/* The column of a run, or NULL if the index is -1 or the run has no measured sample of it. */
const struct profile_column *profile_column(const struct profile_run *run, int index);

/* The column of that key, or -1. */
int profile_find(const struct profile *profile, const char *key);

/* A metric of type "rate" is recorded as the counter `app.fps_total` and the gauge `app.fps`. These
 * find the column of one by the other, or -1. */
int profile_find_gauge(const struct profile *profile, const struct record_series *counter);
int profile_find_counter(const struct profile *profile, const struct record_series *gauge);

/* Mean growth per second of a counter over the measured phase; NaN with fewer than two samples. */
double profile_rate(const struct profile_column *column);

/* Whether the application failed in this run: it could not be started, or exited with an error. An
 * application that was stopped at its timeout did not fail. */
bool profile_run_failed(const struct profile_run *run);

/* Appends how a run ended: "exit 1", "signal 9", "time over, SIGINT". */
void profile_run_outcome(const struct profile_run *run, struct buf *out);

/* The text at two keys of the record's first line, as in ("application", "name"); "": none. */
const char *profile_text(const struct profile *profile, const char *object, const char *key);

/* Appends summary.json: every measure of every target with its statistics, the verdicts of the
 * gates, and the table of a sweep from knobs to measures. */
void profile_write_summary(const struct profile *profile, struct buf *out);
