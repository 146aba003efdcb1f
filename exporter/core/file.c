#include "exporter/core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/memory.h"

enum { FILE_CHUNK = 4096, FILE_MAX_PSEUDO = 1 << 20 };

int file_reread(int fd, const char *name, size_t max_bytes, struct buf *out, struct error *err) {
    buf_reset(out);
    for (;;) {
        size_t room = out->cap > out->len + FILE_CHUNK ? out->cap - out->len - 1 : FILE_CHUNK;
        ssize_t n = pread(fd, buf_reserve(out, room), room, (off_t)out->len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == ESPIPE) {
            return error_set(err, -ESPIPE, "read %s: a pipe, not a file", name);
        }
        if (n < 0) {
            return error_set(err, -errno, "read %s: %m", name);
        }
        out->len += (size_t)n;
        out->data[out->len] = '\0';
        if (out->len > max_bytes) {
            return error_set(err, -EFBIG, "read %s: more than %zu bytes", name, max_bytes);
        }
        if (n == 0) {
            return 0;
        }
    }
}

/* Opens without waiting: a named pipe in a watched directory must not hang us. */
int file_read_at(int dirfd, const char *path, size_t max_bytes, struct buf *out,
                 struct error *err) {
    int fd CLEANUP_CLOSE = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd < 0 ? error_set(err, -errno, "open %s: %m", path)
                  : file_reread(fd, path, max_bytes, out, err);
}

int file_read(const char *path, struct buf *out, struct error *err) {
    return file_read_at(AT_FDCWD, path, FILE_MAX_PSEUDO, out, err);
}

int file_read_stored(const char *path, size_t max_bytes, struct buf *out, struct error *err) {
    return file_read_at(AT_FDCWD, path, max_bytes, out, err);
}

/* In a directory that others can write to, the owner of a file counts, not the path. */
static int check_own(int fd, const char *path, struct error *err) {
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return error_set(err, -errno, "stat %s: %m", path);
    }
    if (!S_ISREG(st.st_mode)) {
        return error_set(err, -EPERM, "%s is not a regular file: use another path", path);
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        return error_set(err, -EPERM,
                         "%s is owned by user %u, this process runs as user %u: remove the file or "
                         "use a directory of your own",
                         path, st.st_uid, geteuid());
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return error_set(err, -EPERM,
                         "%s can be written by others (mode %04o): remove the file, or run "
                         "\"chmod go-w\" on it if you trust its content",
                         path, st.st_mode & 07777);
    }
    return 0;
}

int file_open_own(const char *path, int flags, struct error *err) {
    int fd CLEANUP_CLOSE =
        open(path, flags | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
    if (fd < 0 && errno == ELOOP) {
        return error_set(err, -EPERM, "%s is a symbolic link: remove it or use another path", path);
    }
    if (fd < 0) {
        return error_set(err, -errno, "open %s: %m", path);
    }
    int r = check_own(fd, path, err);
    return r < 0 ? r : TAKE_FD(fd);
}

int file_read_own(const char *path, size_t max_bytes, struct buf *out, struct error *err) {
    int fd CLEANUP_CLOSE = file_open_own(path, O_RDONLY, err);
    return fd < 0 ? fd : file_reread(fd, path, max_bytes, out, err);
}

int file_create_own(const char *path, mode_t mode, struct error *err) {
    if (unlink(path) < 0 && errno != ENOENT) {
        return error_set(err, -errno, "remove %s: %m", path);
    }
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    return fd < 0 ? error_set(err, -errno, "create %s: %m", path) : fd;
}

static int write_all(int fd, const char *name, const char *data, size_t len, struct error *err) {
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return error_set(err, -errno, "write %s: %m", name);
        }
        data += n;
        len -= (size_t)n;
    }
    return fsync(fd) < 0 ? error_set(err, -errno, "fsync %s: %m", name) : 0;
}

/* The name of the file is in its directory, which needs an fsync of its own. */
static int sync_directory(const char *path, struct error *err) {
    char *directory CLEANUP_FREE = mem_strdup(path);
    char *slash = strrchr(directory, '/');
    if (slash != NULL) {
        slash[slash == directory ? 1 : 0] = '\0';
    }
    int fd CLEANUP_CLOSE =
        open(slash != NULL ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0) {
        return error_set(err, -errno, "fsync the directory of %s: %m", path);
    }
    return 0;
}

int file_replace(const char *path, mode_t mode, const void *data, size_t len, struct error *err) {
    struct buf text = {0};
    buf_printf(&text, "%s.new", path);
    char *new_path CLEANUP_FREE = buf_take(&text);
    int fd CLEANUP_CLOSE = file_create_own(new_path, mode, err);
    if (fd < 0) {
        return fd;
    }
    int r = write_all(fd, new_path, data, len, err);
    if (r == 0 && rename(new_path, path) < 0) {
        r = error_set(err, -errno, "rename %s to %s: %m", new_path, path);
    }
    if (r < 0) {
        unlink(new_path);
        return r;
    }
    return sync_directory(path, err);
}

char *file_path_join(const char *base, const char *name) {
    struct buf path = {0};
    size_t n = strlen(base);
    while (n > 0 && base[n - 1] == '/') {
        n--;
    }
    while (*name == '/') {
        name++;
    }
    buf_add(&path, base, n);
    buf_add_char(&path, '/');
    buf_add_str(&path, name);
    return buf_take(&path);
}
