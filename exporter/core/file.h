#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* Reads the whole file at `path` (relative to `dirfd`, or AT_FDCWD) and puts it into `out`, which
 * is emptied first. Files of /proc and /sys have no size; a file longer than `max_bytes` is -EFBIG,
 * and a pipe, which would read as empty while nobody writes, -ESPIPE. Fails with the errno of the
 * call and a text that names the path. */
int file_read_at(int dirfd, const char *path, size_t max_bytes, struct buf *out, struct error *err);

/* The same for a path, with a limit that fits every file of /proc and /sys (1 MiB). */
int file_read(const char *path, struct buf *out, struct error *err);

/* The same for a path with a limit of the caller's. */
int file_read_stored(const char *path, size_t max_bytes, struct buf *out, struct error *err);

/* Opens a file that no other user but root can have written: a regular one of this process' user or
 * of root that nobody else may write. Any other is -EPERM, and the text names what to do. O_CREAT
 * makes it with mode 0600. Returns the descriptor. */
int file_open_own(const char *path, int flags, struct error *err);

/* Reads such a file. */
int file_read_own(const char *path, size_t max_bytes, struct buf *out, struct error *err);

/* Makes an empty file for reading and writing and replaces an old one. Returns the descriptor. */
int file_create_own(const char *path, mode_t mode, struct error *err);

/* Reads an open file from its beginning: for files that are kept open and read again and again. */
int file_reread(int fd, const char *name, size_t max_bytes, struct buf *out, struct error *err);

/* Replaces the file at `path` as a whole or not at all; the new one, first written to <path>.new,
 * survives a power cut. */
int file_replace(const char *path, mode_t mode, const void *data, size_t len, struct error *err);

/* `base` and `name` joined by one slash; the caller frees it. */
char *file_path_join(const char *base, const char *name);
