#pragma once

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* The folder of a run's files. */

/* Creates the folder and its parents. */
int run_output_make(const char *dir, struct error *err);

/* Checks that a run may write there: -EEXIST if it would replace the record of another run. A
 * record without a measured run may be replaced. */
int run_output_check(const char *dir, struct error *err);

/* Appends a text to a file name: without slashes, not longer than file systems allow. */
void run_output_add_name(struct buf *out, const char *text);

/* Creates DIR/output/NAME.log for a program; returns a descriptor or a negative errno. */
int run_output_open(const char *dir, const char *name, struct error *err);

/* The absolute path of `path`, relative to `base` or NULL; the caller frees it. NULL: an error. */
char *run_output_resolve(const char *base, const char *path, struct error *err);
