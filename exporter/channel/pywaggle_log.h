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

/* The logs that are followed, and how far each has been read. One that is away for a while (a
 * mount, a lack of descriptors) is known again when it is back: what it has counted once. */

enum { PYWAGGLE_MAX_FILES = 256 };

/* A log and how far it has been read: up to the end of a line. */
struct pywaggle_file {
    char *directory;
    char *plugin;
    bool below; /* in a directory of the plugin's name, not right there */
    dev_t device;
    ino_t inode; /* 0: it could not be looked at yet */
    int64_t birth_ns;
    off_t offset;
    int64_t gone_ns; /* since when it is away, by the monotonic clock; 0: it is there */
    bool early;      /* it may have been there before us: what it has by now is old */
    bool waiting;    /* for a later turn to be read on */
};

struct pywaggle_files {
    struct pywaggle_file *items; /* at most PYWAGGLE_MAX_FILES */
    size_t n, capacity;
};

/* The state of a log in the file system. */
struct pywaggle_sight {
    dev_t device;
    ino_t inode;
    int64_t birth_ns; /* since 1970; 0: unknown (before Linux 4.11, some file systems) */
    off_t size;
};

/* How long a directory has been followed, by the clock that stamps files. */
struct pywaggle_span {
    int64_t begin_ns, end_ns;
};

/* Since `begin_ns` of the monotonic clock. */
struct pywaggle_span pywaggle_span_until_now(int64_t begin_ns);

void pywaggle_files_finish(struct pywaggle_files *files);

struct pywaggle_file *pywaggle_files_find(const struct pywaggle_files *files, const char *directory,
                                          const char *plugin, bool below);

/* The new one, which may move the others, or NULL: there is no room, not even of one that has been
 * away for minutes. */
struct pywaggle_file *pywaggle_files_add(struct pywaggle_files *files, const char *directory,
                                         const char *plugin, bool below);

void pywaggle_files_remove(struct pywaggle_files *files, struct pywaggle_file *file);

/* Opens data.ndjson there, or in the directory `below` when that is not NULL. -errno;
 * pywaggle_is_absence: whether that means that there is no log. */
int pywaggle_file_open(int dirfd, const char *below, struct pywaggle_sight *ret_sight);
bool pywaggle_is_absence(int code);

/* Notes what was opened, and from where it is to be read. */
void pywaggle_file_meet(struct pywaggle_file *file, const struct pywaggle_sight *sight,
                        const struct pywaggle_span *followed);

/* Notes that it could not be opened. */
void pywaggle_file_miss(struct pywaggle_file *file, int code);
