#pragma once

#include <stdio.h>

#include "exporter/core/error.h"
#include "profiler/analysis/profile.h"

/* Writes or replaces all reports of DIR/samples.jsonl: `reports` in report.c. */
int run_report_write(const char *dir, struct profile **ret_profile, struct error *err);

/* 0, 1: a gate failed, 3: the application failed. */
int run_report_exit_code(const struct profile *profile);

/* Names the gates on measures that do not exist. */
void run_report_explain(const struct profile *profile, FILE *to);

/* Removes these reports, before their record is replaced. */
void run_report_remove(const char *dir);

/* `waap report DIR...`. Returns the exit code of the worst run, 2 if a record cannot be read. */
int report_main(int argc, char **argv);
