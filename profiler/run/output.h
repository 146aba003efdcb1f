#pragma once

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* The folder of a run's files. */

/* Creates the folder and its parents. */
int run_output_make(const char *dir, struct error *err);

/* Checks that a run may write there: -EEXIST if it would replace the record of another run. A
 * record without a measured run may be replaced. */
int run_output_check(const char *dir, struct error *err);

/* Appends a text to a file name: without slashes, and truncated to a length that file systems
 * allow. */
void run_output_add_name(struct buf *out, const char *text);

/* Creates DIR/output/NAME.log for the output of a program; returns a descriptor or a negative
 * errno. */
int run_output_open(const char *dir, const char *name, struct error *err);

/* The absolute path of `path`, relative to `base` (NULL: the working directory); NULL with an error
 * if it does not exist. The caller frees it. */
char *run_output_resolve(const char *base, const char *path, struct error *err);
