#include "exporter/core/gzip.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

enum { GZIP_FASTEST = 1 };

/* The pieces as one text: libdeflate wants it whole. NULL when memory is out; the caller frees it.
 */
static char *join(const struct iovec *pieces, size_t n_pieces, size_t *ret_len) {
    size_t len = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        len += pieces[i].iov_len;
    }
    char *text = malloc(len + 1);
    char *to = text;
    for (size_t i = 0; text != NULL && i < n_pieces; i++) {
        if (pieces[i].iov_len > 0) {
            to = mempcpy(to, pieces[i].iov_base, pieces[i].iov_len);
        }
    }
    *ret_len = len;
    return text;
}

int gzip_compress(const struct iovec *pieces, size_t n_pieces, struct buf *out, struct error *err) {
    size_t text_len = 0;
    char *text CLEANUP_FREE = join(pieces, n_pieces, &text_len);
    struct libdeflate_compressor *compressor =
        text == NULL ? NULL : libdeflate_alloc_compressor(GZIP_FASTEST);
    if (compressor == NULL) {
        return error_set(err, -ENOMEM, "gzip: out of memory");
    }
    size_t bound = libdeflate_gzip_compress_bound(compressor, text_len);
    char *to = buf_reserve(out, bound);
    size_t len = 0;
    if (to != NULL) {
        len = libdeflate_gzip_compress(compressor, text, text_len, to, bound);
        out->len += len;
        out->data[out->len] = '\0';
    }
    libdeflate_free_compressor(compressor);
    return len > 0 ? 0 : error_set(err, -ENOMEM, "gzip: out of memory");
}

/* What the last four bytes promise for the size of the text, modulo 2^32; nobody has to keep it. */
static size_t promised_size(const unsigned char *data, size_t n) {
    enum { TRAILER = 4 };
    if (n < TRAILER) {
        return 0;
    }
    const unsigned char *end = data + n - TRAILER;
    return end[0] | (size_t)end[1] << 8 | (size_t)end[2] << 16 | (size_t)end[3] << 24;
}

/* Unpacks one member at `data`; `*ret_n_read` bytes of it were that member. */
static int unpack_member(struct libdeflate_decompressor *decompressor, const unsigned char *data,
                         size_t n, size_t max_bytes, struct buf *out, size_t *ret_n_read) {
    enum { FIRST_GUESS = 4 };
    size_t room = promised_size(data, n);
    room = room > 0 && room <= max_bytes ? room : FIRST_GUESS * n;
    for (;;) {
        room = room < max_bytes ? room : max_bytes;
        char *to = buf_reserve(out, room);
        if (to == NULL) {
            return -ENOMEM;
        }
        size_t len = 0;
        enum libdeflate_result result =
            libdeflate_gzip_decompress_ex(decompressor, data, n, to, room, ret_n_read, &len);
        if (result == LIBDEFLATE_SUCCESS) {
            out->len += len;
            out->data[out->len] = '\0';
            return 0;
        }
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE) {
            return -EINVAL;
        }
        if (room == max_bytes) {
            return -EFBIG;
        }
        room *= 2;
    }
}

int gzip_unpack(const void *data, size_t n, size_t max_bytes, struct buf *out, struct error *err) {
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    const unsigned char *at = data;
    size_t left = n;
    size_t start = out->len;
    int r = decompressor == NULL ? -ENOMEM : n == 0 ? -EINVAL : 0;
    while (r == 0 && left > 0) {
        size_t n_read = 0;
        r = unpack_member(decompressor, at, left, max_bytes - (out->len - start), out, &n_read);
        at += n_read;
        left -= n_read;
    }
    libdeflate_free_decompressor(decompressor);
    if (r == 0) {
        return 0;
    }
    buf_truncate(out, start);
    return r == -ENOMEM  ? error_set(err, r, "gzip: out of memory")
           : r == -EFBIG ? error_set(err, r, "gzip: unpacked it is more than %zu bytes", max_bytes)
                         : error_set(err, r, "gzip: the data is damaged");
}
