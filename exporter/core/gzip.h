#pragma once

#include <stddef.h>
#include <sys/uio.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* Appends the pieces to `out` as one gzip member, at the fast level: pages are repetitive, a higher
 * level costs twice the time for a tenth fewer bytes. By libdeflate, as zlib takes twice as long.
 */
int gzip_compress(const struct iovec *pieces, size_t n_pieces, struct buf *out, struct error *err);

/* Appends to `out` what `n` bytes of gzip, one member or several, unpack to. -EFBIG where that is
 * more than `max_bytes`, found out without unpacking more; -EINVAL where the data is damaged or
 * cut; `out` is then as it was. */
int gzip_unpack(const void *data, size_t n, size_t max_bytes, struct buf *out, struct error *err);
