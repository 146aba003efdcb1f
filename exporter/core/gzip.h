#pragma once

#include <stddef.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* Appends `data` to `out` as one gzip member, at the fast level: pages are repetitive, a higher
 * level costs twice the time for a tenth fewer bytes. */
int gzip_compress(const void *data, size_t n, struct buf *out, struct error *err);
