#pragma once

#include <stddef.h>
#include <sys/uio.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* Appends the pieces to `out` as one gzip member, at the fast level: pages are repetitive, a higher
 * level costs twice the time for a tenth fewer bytes. By libdeflate, as zlib takes twice as long.
 */
int gzip_compress(const struct iovec *pieces, size_t n_pieces, struct buf *out, struct error *err);
