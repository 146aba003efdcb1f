#include "exporter/core/gzip.h"

#include <errno.h>
#include <limits.h>
#include <zlib.h>

enum { GZIP_WINDOW_BITS = 15 + 16 /* +16 asks zlib for the gzip wrapper */, GZIP_MEM_LEVEL = 8 };

static int deflate_pieces(z_stream *stream, const struct iovec *pieces, size_t n_pieces) {
    for (size_t i = 0; i < n_pieces; i++) {
        stream->next_in = pieces[i].iov_base;
        stream->avail_in = (uInt)pieces[i].iov_len;
        int result = deflate(stream, Z_NO_FLUSH);
        if (result != Z_OK && result != Z_BUF_ERROR) { /* the latter: an empty piece */
            return result;
        }
    }
    return deflate(stream, Z_FINISH);
}

int gzip_compress(const struct iovec *pieces, size_t n_pieces, struct buf *out, struct error *err) {
    size_t n = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        n += pieces[i].iov_len;
    }
    if (n > UINT_MAX / 2) { /* zlib counts in unsigned int, the result's bound is a bit more */
        return error_set(err, -EFBIG, "gzip: %zu bytes are too many", n);
    }
    z_stream stream = {0};
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
    stream.next_out = (Bytef *)to;
    stream.avail_out = (uInt)bound;
    int result = deflate_pieces(&stream, pieces, n_pieces);
    out->len += bound - stream.avail_out;
    out->data[out->len] = '\0';
    deflateEnd(&stream);
    return result == Z_STREAM_END ? 0 : error_set(err, -EIO, "gzip: deflate answered %d", result);
}
