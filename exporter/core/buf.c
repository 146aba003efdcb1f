#include "exporter/core/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "exporter/core/memory.h"

enum { BUF_MIN_CAP = 256 };

void buf_finish(struct buf *buf) {
    free(buf->data);
    *buf = (struct buf){0};
}

void buf_reset(struct buf *buf) {
    buf->len = 0;
    if (buf->data != NULL) {
        buf->data[0] = '\0';
    }
}

void buf_truncate(struct buf *buf, size_t len) {
    if (len < buf->len) {
        buf->len = len;
        buf->data[len] = '\0';
    }
}

char *buf_reserve(struct buf *buf, size_t n) {
    if (n < buf->cap - buf->len) { /* strictly less: the NUL needs a byte too */
        return buf->data + buf->len;
    }
    if (n > SIZE_MAX / 4 || buf->len > SIZE_MAX / 4) {
        mem_out();
    }
    size_t cap = buf->cap < BUF_MIN_CAP ? BUF_MIN_CAP : buf->cap;
    while (cap <= buf->len + n) {
        cap *= 2;
    }
    buf->data = mem_resize(buf->data, cap, 1);
    buf->cap = cap;
    buf->data[buf->len] = '\0'; /* what is only reserved still reads as the string it was */
    return buf->data + buf->len;
}

void buf_add(struct buf *buf, const void *data, size_t n) {
    char *to = buf_reserve(buf, n);
    if (n > 0) {
        memcpy(to, data, n);
    }
    to[n] = '\0';
    buf->len += n;
}

void buf_add_str(struct buf *buf, const char *text) {
    buf_add(buf, text, strlen(text));
}

void buf_add_char(struct buf *buf, char c) {
    buf_add(buf, &c, 1);
}

void buf_vprintf(struct buf *buf, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int saved_errno = errno;
    int n = vsnprintf(NULL, 0, format, args);
    assert(n >= 0);
    char *to = buf_reserve(buf, (size_t)n);
    errno = saved_errno; /* "%m" must be the same both times */
    vsnprintf(to, (size_t)n + 1, format, again);
    buf->len += (size_t)n;
    va_end(again);
}

void buf_printf(struct buf *buf, const char *format, ...) {
    va_list args;
    va_start(args, format);
    buf_vprintf(buf, format, args);
    va_end(args);
}

const char *buf_str(const struct buf *buf) {
    return buf->data != NULL ? buf->data : "";
}

char *buf_take(struct buf *buf) {
    char *tight = mem_resize(buf->data, buf->len + 1, 1);
    tight[buf->len] = '\0';
    *buf = (struct buf){0};
    return tight;
}
