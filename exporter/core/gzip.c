#include "exporter/core/gzip.h"

#include <errno.h>
#include <libdeflate.h>

enum { GZIP_FASTEST = 1 };

/* One piece of text; several are put together in `scratch` first, as libdeflate wants them whole.
 */
static struct iovec join(const struct iovec *pieces, size_t n_pieces, struct buf *scratch) {
    if (n_pieces == 1) {
        return pieces[0];
    }
    for (size_t i = 0; i < n_pieces; i++) {
        buf_add(scratch, pieces[i].iov_base, pieces[i].iov_len);
    }
    return (struct iovec){scratch->data, scratch->len};
}

int gzip_compress(const struct iovec *pieces, size_t n_pieces, struct buf *out, struct error *err) {
    struct buf scratch CLEANUP_BUF = {0};
    struct iovec text = join(pieces, n_pieces, &scratch);
    struct libdeflate_compressor *compressor =
        scratch.failed ? NULL : libdeflate_alloc_compressor(GZIP_FASTEST);
    if (compressor == NULL) {
        return error_set(err, -ENOMEM, "gzip: out of memory");
    }
    size_t bound = libdeflate_gzip_compress_bound(compressor, text.iov_len);
    char *to = buf_reserve(out, bound);
    size_t len = 0;
    if (to != NULL) {
        len = libdeflate_gzip_compress(compressor, text.iov_base, text.iov_len, to, bound);
        out->len += len;
        out->data[out->len] = '\0';
    }
    libdeflate_free_compressor(compressor);
    return len > 0 ? 0 : error_set(err, -ENOMEM, "gzip: out of memory");
}
