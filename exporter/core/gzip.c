#include "exporter/core/gzip.h"

#include <errno.h>
#include <limits.h>
#include <zlib.h>

enum { GZIP_WINDOW_BITS = 15 + 16 /* +16 asks zlib for the gzip wrapper */, GZIP_MEM_LEVEL = 8 };

int gzip_compress(const void *data, size_t n, struct buf *out, struct error *err) {
    z_stream stream = {0};
    if (n > UINT_MAX / 2) { /* zlib counts in unsigned int, the result's bound is a bit more */
        return error_set(err, -EFBIG, "gzip: %zu bytes are too many", n);
    }
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return error_set(err, -ENOMEM, "gzip: out of memory");
    }
    size_t bound = deflateBound(&stream, n);
    char *to = buf_reserve(out, bound);
    if (to == NULL) {
        deflateEnd(&stream);
        return error_set(err, -ENOMEM, "gzip: out of memory");
    }
    stream.next_in = (Bytef *)data;
    stream.avail_in = (uInt)n;
    stream.next_out = (Bytef *)to;
    stream.avail_out = (uInt)bound;
    int result = deflate(&stream, Z_FINISH);
    out->len += bound - stream.avail_out;
    out->data[out->len] = '\0';
    deflateEnd(&stream);
    return result == Z_STREAM_END ? 0 : error_set(err, -EIO, "gzip: deflate answered %d", result);
}
