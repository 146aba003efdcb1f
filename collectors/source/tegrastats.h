#pragma once

#include <stdint.h>

#include "collectors/source/tegrastats_line.h"
#include "exporter/core/error.h"

/* NVIDIA's tegrastats as a source: runs it, reads its records, starts it again when it dies or
 * falls silent, after a pause that doubles from a second to a minute. Somebody else's `tegrastats
 * --stop` ends ours too, so that is part of normal life. All calls come from one thread, none
 * waits; times are those of the monotonic clock. */
struct tegrastats;

struct tegrastats_stats {
    uint64_t n_restarts;       /* starts after the first */
    uint64_t n_parse_errors;   /* lines that are no record, or too long to be one */
    uint64_t n_unknown_tokens; /* parts of records that were not understood */
};

/* Directories of root that are searched, NULL-terminated. */
extern const char *const tegrastats_directories[];

/* The path of the first program in `directories` that program_open trusts; the caller frees it.
 * NULL if there is none. */
char *tegrastats_find(const char *const *directories);

/* Starts nothing yet. A negative errno if there is no program at `path` or program_open does not
 * trust it, which is checked again whenever the program is started. */
int tegrastats_open(const char *path, int64_t interval_ms, struct tegrastats **ret_tegrastats,
                    struct error *err);

/* Reads what is there and sees to the program; to be called a few times per interval, as a record
 * counts as printed when it is read. (Called more seldom than once a minute, with the pipe full and
 * the program standing still, it throws away what it finds.) A negative errno with words if the
 * program failed since the last call: it could not be started, ended, or was silent. That is no
 * reason to stop calling. */
int tegrastats_poll(struct tegrastats *tegrastats, int64_t now_ns, struct error *err);

/* The last record, until the next call of tegrastats_poll; NULL if there is none or it is older
 * than three intervals and three seconds. In the first record after a start the CPUs have no load.
 */
const struct tegrastats_line *tegrastats_latest(const struct tegrastats *tegrastats,
                                                int64_t now_ns);

/* How old the last record is, also if it is too old to be used; NAN if there was none. */
double tegrastats_age_seconds(const struct tegrastats *tegrastats, int64_t now_ns);

struct tegrastats_stats tegrastats_stats(const struct tegrastats *tegrastats);

/* Ends the program, within about a tenth of a second. Accepts NULL. */
void tegrastats_close(struct tegrastats *tegrastats);
