#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "collectors/source/rows.h"
#include "exporter/core/buf.h"
#include "exporter/metrics/parse.h"
#include "exporter/metrics/snapshot.h"

struct textfile_limits {
    size_t max_bytes;
    size_t max_total_bytes; /* of all files together */
    size_t left_bytes;      /* of those, for this file and the next ones */
    struct exposition_limits page;
};

struct textfile_family {
    struct metric_desc desc; /* help is NULL if the file has none */
    const struct sample *samples;
    size_t n_samples;
};

/* Equal stamps mean that a file has not changed. */
struct textfile_stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime, ctime;
};

/* One *.prom file and its content when it was last read. */
struct textfile_file {
    struct row row;        /* its path */
    struct labels *labels; /* file="…" */

    struct textfile_stamp stamp;
    bool trusted;  /* an equal stamp means equal content */
    char *problem; /* why it has no families; NULL: it was read */

    struct textfile_family *families; /* none of them empty */
    size_t n_families;
    struct sample *samples;
    struct buf block; /* holds the labels and strings of all */
};

void textfile_file_finish(void *file); /* as `finish` of rows */

/* Reads the file if it has changed. Sets `*changed` if its families have changed, and `problem` if
 * it cannot be used. -ENOENT if it does not exist, else 0. Never waits for a pipe or a device. */
int textfile_file_refresh(struct textfile_file *file, const struct textfile_limits *limits,
                          bool *changed);
