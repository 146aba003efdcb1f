#include "exporter/core/gzip.h"

#include <errno.h>
#include <libdeflate.h>

#include "exporter/core/memory.h"

enum { GZIP_FASTEST = 1 };

void gzip_compress(const struct iovec *pieces, size_t n_pieces, struct buf *out) {
    struct buf text CLEANUP_BUF = {0}; /* libdeflate wants it whole */
    size_t len = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        len += pieces[i].iov_len;
    }
    buf_reserve(&text, len);
    for (size_t i = 0; i < n_pieces; i++) {
        buf_add(&text, pieces[i].iov_base, pieces[i].iov_len);
    }
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(GZIP_FASTEST);
    if (compressor == NULL) {
        mem_out();
    }
    size_t bound = libdeflate_gzip_compress_bound(compressor, len);
    char *to = buf_reserve(out, bound);
    out->len += libdeflate_gzip_compress(compressor, text.data, len, to, bound);
    out->data[out->len] = '\0';
    libdeflate_free_compressor(compressor);
}

/* The size of the text modulo 2^32 in the last four bytes, which a peer may have made up. */
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
    if (decompressor == NULL) {
        mem_out();
    }
    const unsigned char *at = data;
    size_t left = n;
    size_t start = out->len;
    int r = n == 0 ? -EINVAL : 0;
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
    return r == -EFBIG ? error_set(err, r, "gzip: unpacked it is more than %zu bytes", max_bytes)
                       : error_set(err, r, "gzip: the data is damaged");
}
