#pragma once

#include "exporter/core/buf.h"
#include "profiler/analysis/gate.h"
#include "profiler/analysis/measure.h"
#include "profiler/analysis/profile.h"

/* All results of a record. A zeroed struct is empty. */
struct results {
    struct profile *profile;
    struct result *items; /* one per target of the profile, in its order */
    size_t n;
    size_t n_gates, n_failed_gates; /* of all targets, without those that need a baseline */
    size_t n_failed_runs;
};

struct result {
    const struct profile_target *target;
    struct measures measures;
    struct gate *gates;
    size_t n_gates;
    size_t n_measured;    /* runs that were measured */
    size_t n_failed_runs; /* of all runs, with warm-up */
};

/* Reads DIR/samples.jsonl and evaluates the gates that need no baseline. */
int results_read(const char *dir, struct results *ret_results, struct error *err);

/* The same for the record itself. */
int results_read_record(const char *path, struct results *ret_results, struct error *err);

/* Frees the results and leaves an empty struct. */
void results_finish(struct results *results);
#define CLEANUP_RESULTS CLEANUP(results_finish)

/* The text at two keys of the record's first line, as in ("application", "name"); "": none. */
const char *results_text(const struct results *results, const char *object, const char *key);

/* Whether the targets are the settings of a sweep over knobs. */
bool results_is_sweep(const struct results *results);

/* Appends summary.json: every measure of every target with its statistics, the verdicts of the
 * gates, and the table of a sweep from knobs to measures. */
void summary_write(const struct results *results, struct buf *out);
