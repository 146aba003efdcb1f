#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/buf.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Length of the UTF-8 sequence at `text` (1 to 4), of which `left` bytes may be read; 0 if it is
 * invalid: overlong, a surrogate or above U+10FFFF. */
size_t utf8_sequence(const char *text, size_t left);

/* Appends `text` as the exposition formats want it inside a line: backslash and newline escaped,
 * quotes too if `quotes` is set, invalid UTF-8 replaced by U+FFFD. */
void utf8_add_escaped(struct buf *out, const char *text, bool quotes);
