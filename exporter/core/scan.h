#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/error.h"

/* Walking over the kernel's text line by line and word by word, without copying. A line ends at its
 * newline or at the end of the text; words are separated by blanks. */

struct scan_word {
    const char *text;
    size_t len;
};

/* The next word of the line at `*cursor`, which moves behind it; false at the end of the line. */
bool scan_word(const char **cursor, struct scan_word *ret_word);

/* The next word as an unsigned decimal number; false if it is absent, another or too large. */
bool scan_u64(const char **cursor, uint64_t *ret_value);

/* The next word as a number, with sign, point and exponent; false if it is absent or not finite. */
bool scan_double(const char **cursor, double *ret_value);

/* The words up to the end of the line as numbers, `max` at most: how many, or -EINVAL. */
int scan_numbers(const char **cursor, uint64_t *values, size_t max);

/* The beginning of the next line, or the end of the text. */
const char *scan_next_line(const char *text);

bool scan_word_equal(struct scan_word word, const char *text);

/* Called for a line; `number` counts from 1. -EINVAL: not understood. */
typedef int scan_line(void *context, size_t number, const char *line);

/* Calls `handle` for every line of `text` that is not empty. A line that fails does not stop the
 * walk; the first failure is worded with `path`, its number and the line, and returned. */
int scan_lines(const char *text, const char *path, scan_line *handle, void *context,
               struct error *err);
