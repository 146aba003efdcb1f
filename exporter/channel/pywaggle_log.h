#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "exporter/core/error.h"
#include "exporter/metrics/labels.h"
#include "exporter/push/update.h"

/* A line of pywaggle's run log (data.ndjson), which a plugin writes for every publish:
 * {"meta":{"camera":"top"},"name":"env.count.car","timestamp":"…","value":3} */

enum { PYWAGGLE_MAX_LABELS = 32, PYWAGGLE_MAX_UPDATES = 2, PYWAGGLE_MAX_NAME_LEN = 128 };

/* What a line means as metrics; points into the line. Every publish counts in
 * plugin_publishes_total{name}. A number becomes the gauge env_count_car with the meta as labels;
 * what timeit("plugin.duration.inference") publishes, in nanoseconds, goes into the histogram
 * plugin_duration_seconds{name="inference"}. Texts count only. */
struct pywaggle_line {
    struct push_update updates[PYWAGGLE_MAX_UPDATES]; /* the count first */
    size_t n_updates;
    double one, value;
    char name[PYWAGGLE_MAX_NAME_LEN + 2];
    struct label publish_label;
    struct label labels[PYWAGGLE_MAX_LABELS];
};

/* Reads `len` bytes, which are overwritten. -EINVAL with what is wrong. `out` must not move. */
int pywaggle_line_read(char *text, size_t len, struct pywaggle_line *out, struct error *err);

/* The state of a log in the file system. */
struct pywaggle_sight {
    dev_t device;
    ino_t inode;
    int64_t birth_ns; /* since 1970; 0: unknown (before Linux 4.11, some file systems) */
    off_t size;
};

/* A log, read up to the end of a line. A log that is away for a while (a mount, a lack of
 * descriptors) is recognised when it is back, so that nothing counts twice. */
struct pywaggle_log {
    char *plugin;
    bool below; /* in a directory of the plugin's name, not right there */
    bool is_away;
    struct pywaggle_sight last; /* inode 0: it has not been seen yet */
    off_t offset;
};

/* How long a directory has been followed, by the clock that stamps files. */
struct pywaggle_span {
    int64_t begin_ns, end_ns;
};

/* Notes the state of a log and where reading continues: at its end if the log is older than the
 * time it is followed for or, at an unknown age, found by the first search. */
void pywaggle_log_meet(struct pywaggle_log *log, const struct pywaggle_sight *sight,
                       const struct pywaggle_span *followed, bool is_first_search);
