#include "collectors/source/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/scan.h"

/* /proc/stat has a word per interrupt: more than 100 KiB on large machines. */
enum { SOURCE_FILE_MAX_BYTES = 4 << 20, SOURCE_FILE_NUMBER_BYTES = 64 };

void source_file_init(struct source_file *file, const char *base, const char *name,
                      const char *fallback) {
    bool use_fallback = fallback != NULL && !source_file_exists(base, name);
    file->fd = -1;
    file->path = file_path_join(base, use_fallback ? fallback : name);
}

static void close_file(struct source_file *file) {
    if (file->fd >= 0) {
        close(TAKE_FD(file->fd));
    }
}

void source_file_finish(struct source_file *file) {
    if (file->path != NULL) {
        close_file(file);
    }
    free(file->path);
    *file = (struct source_file){.fd = -1};
}

int source_file_read(struct source_file *file, struct buf *out, struct error *err) {
    if (file->fd < 0) {
        file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    }
    if (file->fd < 0) {
        return error_set(err, -errno, "open %s: %m", file->path);
    }
    int r = file_reread(file->fd, file->path, SOURCE_FILE_MAX_BYTES, out, err);
    if (r < 0) {
        close_file(file);
    }
    return r;
}

int source_file_number(struct source_file *file, double *ret_value, struct error *err) {
    if (file->path == NULL) {
        return 0;
    }
    if (file->fd < 0) {
        file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    }
    char text[SOURCE_FILE_NUMBER_BYTES];
    ssize_t n = file->fd >= 0 ? pread(file->fd, text, sizeof(text) - 1, 0) : -1;
    if (n <= 0) {
        close_file(file);
        return 0;
    }
    text[n] = '\0';
    const char *cursor = text;
    if (!scan_double(&cursor, ret_value)) {
        return error_set(err, -EINVAL, "%s:1: not understood: \"%.*s\"", file->path,
                         (int)strcspn(text, "\n"), text);
    }
    return 1;
}

char *source_file_text(const char *base, const char *name) {
    char *path CLEANUP_FREE = file_path_join(base, name);
    struct buf text CLEANUP_BUF = {0};
    if (file_read(path, &text, NULL) < 0) {
        return NULL;
    }
    const char *begin = buf_str(&text);
    return mem_strndup(begin, strcspn(begin, "\n"));
}

bool source_file_exists(const char *base, const char *name) {
    char *path CLEANUP_FREE = file_path_join(base, name);
    return access(path, R_OK) == 0;
}

bool source_file_absent(int result) {
    /* /proc/pressure returns EOPNOTSUPP if the kernel was booted with psi=0. */
    return result == -ENOENT || result == -ENOTDIR || result == -EOPNOTSUPP;
}
