#pragma once

#include <stddef.h>

#include "exporter/core/buf.h"

/* Appends `page` with its names rewritten as `escaping=dots` asks: every underscore in a metric or
 * label name doubled. The other schemes leave names of our alphabet as they are. */
void exposition_escape_dots(const char *page, size_t len, struct buf *out);
