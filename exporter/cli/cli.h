#pragma once

#include <stdbool.h>

#include "collectors/collector.h"
#include "exporter/core/buf.h"
#include "exporter/metrics/metric.h"
#include "exporter/settings/config.h"

/* What `waap serve` says about itself without serving. */

/* What this build can do: its collectors, and tables of the metrics that come from none of them.
 * All arrays are NULL-terminated. */
struct cli_build {
    const struct collector *const *collectors;
    const struct metric_desc *const *const *own_metrics;
};

/* Looks for --help, -h, --version, --list-collectors, --list-metrics and --list-settings behind
 * argv[0]; appends the answer to the first of them to `out` and returns true, or returns false. */
bool cli_answer(const struct cli_build *build, int argc, char *const *argv, struct buf *out);

/* The flags of `waap serve`, in groups, with defaults and variables. */
void cli_write_help(const struct cli_build *build, struct buf *out);

/* "waap 1.2.3". */
void cli_write_version(const struct cli_build *build, struct buf *out);

/* One aligned line per collector below a line of titles: collector, default, reads. */
void cli_write_collectors(const struct cli_build *build, struct buf *out);

/* One aligned line per setting, sorted by name: setting (the flag without its dashes), key in the
 * file, variable, takes, default, help. */
void cli_write_settings(const struct cli_build *build, struct buf *out);

/* One aligned line per metric, sorted by name: metric, type, labels, collector, help. */
void cli_write_metrics(const struct cli_build *build, struct buf *out);
