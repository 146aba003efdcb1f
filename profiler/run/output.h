#pragma once

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* The folder of a run's files. */

/* Makes the folder and those above it. */
int run_output_make(const char *dir, struct error *err);

/* Whether a run may write there: -EEXIST, saying so, where it would replace what another run has
 * measured. A record without a run that counts is no loss. */
int run_output_check(const char *dir, struct error *err);

/* Appends a text to the name of a file: without slashes, and not too long for a file system. */
void run_output_add_name(struct buf *out, const char *text);

/* Creates DIR/output/NAME.log for what a program prints: a descriptor, or a negative errno. */
int run_output_open(const char *dir, const char *name, struct error *err);

/* The absolute path of `path`, which is relative to `base` (NULL: to here); NULL with an error
 * where it is not there. The caller frees it. */
char *run_output_resolve(const char *base, const char *path, struct error *err);

/* The folder in which `file` is, "." for a bare name. The caller frees it. */
char *run_output_folder(const char *file);
