#pragma once

#include <stdbool.h>

#include "exporter/core/buf.h"

/* Appends `text` as the exposition formats want it inside a line: backslash and newline escaped,
 * quotes too where `quotes` is set, invalid UTF-8 replaced by U+FFFD. */
void escape_add(struct buf *out, const char *text, bool quotes);
