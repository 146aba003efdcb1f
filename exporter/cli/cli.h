#pragma once

#include <stdbool.h>

#include "collectors/collector.h"
#include "exporter/core/buf.h"
#include "exporter/metrics/metric.h"
#include "exporter/settings/config.h"

/* Commands other than `waap serve`, and the flags of `waap serve` that only print something. */

/* The NULL-terminated collectors of this build; `own` has the metrics that belong to none. */
struct cli_build {
    const struct collector *const *collectors;
    struct collector own;
};

/* Looks for --help, -h, --version, --list-collectors, --list-metrics and --list-settings after
 * argv[0]; appends the text for the first of them to `out`. False: there is none. */
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

/* `waap check-config FILE...`: prints "FILE: ok" or all mistakes of each file. Returns the exit
 * code: 0, or 2. */
int check_config_main(const struct collector *const *collectors, int argc, char **argv);

/* `waap healthcheck [flags of serve]`: checks the daemon on this machine, for containers without a
 * shell. Without flags it uses those of the `waap serve` that runs here. Returns the exit code: 0,
 * 1 if the daemon is not healthy, 2 for wrong flags. */
int healthcheck_main(const struct collector *const *collectors, int argc, char **argv);

/* Commands of another program, which links libraries that the daemon must not.
 *
 * Appends the `i`-th path at which to look for `program`, given the path of our own executable:
 * next to it, in the build, in libexec of the same prefix, in the configured libexec. False: there
 * are no more. */
bool subprogram_path(const char *own_exe, const char *room, const char *program, size_t i,
                     struct buf *out);

/* Replaces this process by `program`, which the build puts into the folder `room`, with these
 * arguments. Returns only on failure, after an error message: the exit code. */
int subprogram_exec(const char *room, const char *program, char **argv);
