#pragma once

#include <stdint.h>

#include "collectors/source/tegrastats_line.h"
#include "exporter/core/error.h"

/* NVIDIA's tegrastats as a source: runs it, reads its records and restarts it if it dies or stops
 * printing, after a pause that doubles from a second to a minute. (`tegrastats --stop` by any user
 * ends ours as well.) All calls come from one thread, none waits; times are of the monotonic
 * clock. */
struct tegrastats;

struct tegrastats_stats {
    uint64_t n_restarts;       /* starts after the first */
    uint64_t n_parse_errors;   /* lines that are not records, or too long */
    uint64_t n_unknown_tokens; /* parts of records that were not understood */
};

/* The directories that are searched, NULL-terminated. */
extern const char *const tegrastats_directories[];

/* The path of the first program in `directories` that program_open trusts; the caller frees it.
 * NULL if there is none. */
char *tegrastats_find(const char *const *directories);

/* Starts nothing yet. A negative errno if there is no program at `path` or program_open does not
 * trust it, which is checked again whenever the program is started. */
int tegrastats_open(const char *path, int64_t interval_ms, struct tegrastats **ret_tegrastats,
                    struct error *err);

/* Reads new records and restarts the program if needed. Call it a few times per interval: a record
 * gets the time at which it is read. (If it is called less than once a minute, the pipe fills up
 * and its content is discarded.) A negative errno if the program failed since the last call: it
 * could not be started, ended, or printed nothing. Keep calling after a failure. */
int tegrastats_poll(struct tegrastats *tegrastats, int64_t now_ns, struct error *err);

/* The last record, until the next call of tegrastats_poll; NULL if there is none or it is older
 * than three intervals and three seconds. In the first record after a start the CPUs have no load.
 */
const struct tegrastats_line *tegrastats_latest(const struct tegrastats *tegrastats,
                                                int64_t now_ns);

/* The age of the last record, even if it is too old to be used; NAN if there was none. */
double tegrastats_age_seconds(const struct tegrastats *tegrastats, int64_t now_ns);

struct tegrastats_stats tegrastats_stats(const struct tegrastats *tegrastats);

/* Ends the program, within about a tenth of a second. Accepts NULL. */
void tegrastats_close(struct tegrastats *tegrastats);
