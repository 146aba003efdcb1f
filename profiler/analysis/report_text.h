#pragma once

#include <stdio.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* Text that several reports write. */

/* A JSON string, for files that include jansson.h, which conflicts with core's json.h. */
void text_add_string(struct buf *out, const char *text);

/* A JSON number; null if it is not finite. */
void text_add_number(struct buf *out, double value);

/* `"key":`, after a comma if it is not the first in its object. */
void text_add_key(struct buf *out, const char *key);

/* A member of an object. */
void text_add_text_of(struct buf *out, const char *key, const char *text);
void text_add_number_of(struct buf *out, const char *key, double value);
void text_add_bool_of(struct buf *out, const char *key, bool value);

/* An array of strings that ends in NULL. */
void text_add_list_of(struct buf *out, const char *key, const char *const *texts);

/* Text for XML and HTML, in elements and in attributes. Characters that XML excludes become U+FFFD.
 */
void text_add_escaped(struct buf *out, const char *text);

/* A value for people, in three or four digits and with a prefix: "1.21 GiB", "28.9 /s", "31.4 ms".
 * The unit is that of the record ("s", "B", "W", "ratio", …). */
void text_add_human(struct buf *out, double value, const char *unit);

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

/* Writes a file that consists of that text. */
int text_write_file(const char *dir, const char *name, const struct buf *text, struct error *err);
