#pragma once

#include <stdio.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* Text that several reports write. */

/* A JSON number, as json_put_number but null if it is not finite. */
void text_put_number(struct buf *out, const char *key, double value);

/* A JSON array of the texts, which end in NULL. */
void text_put_list(struct buf *out, const char *key, const char *const *texts);

/* As buf_printf, but texts (%s) are escaped for XML and HTML, in elements and in attributes;
 * characters that XML excludes become U+FFFD. Of the other conversions it knows %d, %u, %zu, %f and
 * %g. */
void text_markup(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A value for people, in three or four digits and with a prefix: "1.21 GiB", "28.9 /s", "31.4 ms".
 * The unit is that of the record ("s", "B", "W", "ratio", …); a very long one is left out. */
struct text_human {
    char text[64];
};
struct text_human text_human(double value, const char *unit);

/* DIR/NAME while it is written, under another name until it is complete. Accepts a zeroed struct.
 */
struct text_file {
    char *path;
    char *partial; /* its name until it is complete */
    FILE *file;
};

int text_file_open(struct text_file *file, const char *dir, const char *name, struct error *err);

/* Renames the complete file; fails if a write has failed. */
int text_file_commit(struct text_file *file, struct error *err);

/* Removes a file that was not committed. */
void text_file_finish(struct text_file *file);
#define CLEANUP_TEXT_FILE CLEANUP(text_file_finish)
