#pragma once

#include <stdio.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* What several reports write. */

/* A JSON string, for files that read JSON with jansson, whose header has core's names. */
void text_add_string(struct buf *out, const char *text);

/* A number as JSON has it; null where it is not finite. */
void text_add_number(struct buf *out, double value);

/* `"key":` behind a comma, unless it is the first in its object. */
void text_add_key(struct buf *out, const char *key);

/* Both at once. */
void text_add_text_of(struct buf *out, const char *key, const char *text);
void text_add_number_of(struct buf *out, const char *key, double value);

/* Text for XML and HTML, in elements and in attributes. What XML cannot hold at all becomes
 * U+FFFD. */
void text_add_escaped(struct buf *out, const char *text);

/* A value for people, in three or four digits with the right prefix: "1.21 GiB", "28.9 /s",
 * "31.4 ms". The unit is that of the record ("s", "B", "W", "ratio", …). */
void text_add_human(struct buf *out, double value, const char *unit);

/* DIR/NAME in the making: nobody sees half of it. A zeroed struct is none. */
struct text_file {
    char *path;
    char *partial; /* where it is until it is whole */
    FILE *file;
};

int text_file_open(struct text_file *file, const char *dir, const char *name, struct error *err);

/* Puts it in its place; fails where anything written to it has not arrived. */
int text_file_commit(struct text_file *file, struct error *err);

/* Drops what was not committed. */
void text_file_finish(struct text_file *file);
#define CLEANUP_TEXT_FILE CLEANUP(text_file_finish)

/* The same for a text that is there already. */
int text_write_file(const char *dir, const char *name, const struct buf *text, struct error *err);
