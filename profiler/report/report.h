#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/error.h"
#include "exporter/settings/problems.h"

/* The outcome of a run, for an exit code. */
struct run_verdict {
    size_t n_gates; /* without those that need a baseline */
    size_t n_failed_gates;
    size_t n_failed_runs;
    bool complete;           /* the record is complete */
    int exit_code;           /* 0, 1: a gate failed, 3: the application failed */
    struct problems missing; /* gates on measures that do not exist */
};

/* Frees the content of a verdict. */
void run_verdict_finish(struct run_verdict *verdict);
#define CLEANUP_VERDICT CLEANUP(run_verdict_finish)

/* Writes all reports of DIR/samples.jsonl: summary.json, samples.csv, junit.xml, metrics.om and
 * report.html. Existing files are replaced. */
int run_report_write(const char *dir, struct run_verdict *ret_verdict, struct error *err);

/* Removes these reports, before their record is replaced. */
void run_report_remove(const char *dir);

/* `waap report DIR...`: writes the reports again. Returns the exit code of the worst verdict, or 2
 * if a record cannot be read. */
int report_main(int argc, char **argv);
