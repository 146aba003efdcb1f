#pragma once

#include <stdbool.h>

#include "exporter/core/buf.h"

/* Writes JSON. json.c has it; this header is apart from json.h for files that include jansson.h,
 * which has some of the same names for reading. */

/* Appends a text as a JSON string; invalid UTF-8 becomes U+FFFD, and control characters are escaped
 * so that no text can act on a terminal. */
void json_add_string(struct buf *out, const char *text);

/* The calls below append one member of an object, or with the key NULL one element of an array or
 * the whole text, with the comma that it needs: they look at what `out` ends in.
 *
 *     json_open(out, NULL, '{');
 *     json_put_string(out, "name", name);
 *     json_open(out, "values", '[');
 *     for (…) json_put_number(out, NULL, values[i]);
 *     json_close(out, ']');
 *     json_close(out, '}'); */
void json_open(struct buf *out, const char *key, char bracket);
void json_close(struct buf *out, char bracket);
void json_put_bool(struct buf *out, const char *key, bool value);
void json_put_string(struct buf *out, const char *key, const char *text);

/* As json_value reads it: "NaN", "+Inf" and "-Inf" are strings. */
void json_put_number(struct buf *out, const char *key, double number);

/* Anything else, already in JSON: json_put(out, "seen_at", "%.3f", seconds). */
void json_put(struct buf *out, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
