#pragma once

#include <stddef.h>
#include <sys/uio.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* Appends the pieces to `out` as one gzip member, at the fastest level: pages are repetitive, and a
 * higher level costs twice the time for a tenth fewer bytes. */
void gzip_compress(const struct iovec *pieces, size_t n_pieces, struct buf *out);

/* Unpacks `n` bytes of gzip, one member or several, and appends the text to `out`. -EFBIG if it is
 * longer than `max_bytes`, without unpacking more; -EINVAL if the data is damaged or truncated;
 * `out` is then unchanged. */
int gzip_unpack(const void *data, size_t n, size_t max_bytes, struct buf *out, struct error *err);
