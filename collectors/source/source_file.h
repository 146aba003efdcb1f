#pragma once

#include <stdbool.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* A file of /proc or /sys that is kept open and read repeatedly: pread costs less than open, read
 * and close. A zeroed struct must be initialised by source_file_init. */
struct source_file {
    char *path;
    int fd; /* -1: to be opened by the next read */
};

/* Sets the path to `name` under `base`, or to `fallback` (may be NULL) if that cannot be read.
 * Opens nothing yet. */
void source_file_init(struct source_file *file, const char *base, const char *name,
                      const char *fallback);
void source_file_finish(struct source_file *file);

/* Reads the whole file into `out`. A file that was missing or failed is opened again. */
int source_file_read(struct source_file *file, struct buf *out, struct error *err);

/* Reads the number that a short file begins with ("1377000\n", "-12 mA"), by one system call. 1:
 * read; 0: not available now (no such file, no permission, a suspended sensor); -EINVAL: not a
 * number. A file that failed is opened again the next time. */
int source_file_number(struct source_file *file, double *ret_value, struct error *err);

/* The first line of the file `name` under `base`, without its newline; for files that are read
 * once. The caller frees it. NULL if it cannot be read. */
char *source_file_text(const char *base, const char *name);

/* Whether the file `name` under `base` can be read. */
bool source_file_exists(const char *base, const char *name);

/* Whether a result of source_file_read means that this kernel or machine has no such file. */
bool source_file_absent(int result);
