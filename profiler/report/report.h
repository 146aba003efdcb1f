#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/error.h"
#include "exporter/settings/problems.h"

/* What came out of a run, for an exit code. */
struct run_verdict {
    size_t n_gates; /* that could be judged */
    size_t n_failed_gates;
    size_t n_failed_runs;
    bool complete;           /* the record ended by itself */
    int exit_code;           /* 0, 1 where a gate failed, 3 where the application did */
    struct problems missing; /* gates on what was not measured */
};

/* Frees what a verdict holds. */
void run_verdict_finish(struct run_verdict *verdict);
#define CLEANUP_VERDICT CLEANUP(run_verdict_finish)

/* Makes everything that is derived from DIR/samples.jsonl: summary.json, samples.csv, junit.xml,
 * metrics.om and report.html. Files that were there are replaced. */
int run_report_write(const char *dir, struct run_verdict *ret_verdict, struct error *err);

/* Removes all of it, so that nothing is told of a record that is about to be replaced. */
void run_report_remove(const char *dir);

/* `waap report DIR...`: makes the reports again. Returns the exit code: that of the worst verdict,
 * or 2 where a record cannot be read. */
int report_main(int argc, char **argv);
