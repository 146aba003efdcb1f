#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "exporter/core/cleanup.h"

/* A growing run of bytes. Once anything was added a NUL follows `data`. Zeroed it is empty. */
struct buf {
    char *data;
    size_t len;
    size_t cap;
};

/* Frees the content and leaves an empty buffer. */
void buf_finish(struct buf *buf);
#define CLEANUP_BUF CLEANUP(buf_finish)

/* Empties the buffer but keeps its memory. */
void buf_reset(struct buf *buf);

/* Drops everything behind the first `len` bytes. */
void buf_truncate(struct buf *buf, size_t len);

/* Makes room for `n` more bytes (and the NUL) at the returned place; the caller adds to `len`. */
char *buf_reserve(struct buf *buf, size_t n);

void buf_add(struct buf *buf, const void *data, size_t n);
void buf_add_str(struct buf *buf, const char *text);
void buf_add_char(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* The content as a string; "" for an empty buffer. */
const char *buf_str(const struct buf *buf);

/* Hands the content over in no more memory than it needs; the caller frees it. */
char *buf_take(struct buf *buf);
