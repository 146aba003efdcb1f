#include "collectors/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"

/* /proc/stat has a word per interrupt: more than 100 KiB on large machines. */
enum { SOURCE_FILE_MAX_BYTES = 4 << 20 };

int source_file_init(struct source_file *file, const char *base, const char *name,
                     const char *fallback, struct error *err) {
    file->fd = -1;
    file->path = file_path_join(base, name);
    if (file->path != NULL && fallback != NULL && access(file->path, R_OK) < 0) {
        free(file->path);
        file->path = file_path_join(base, fallback);
    }
    if (file->path == NULL) {
        return error_set(err, -ENOMEM, "%s/%s: out of memory", base, name);
    }
    return 0;
}

void source_file_finish(struct source_file *file) {
    if (file->path != NULL && file->fd >= 0) {
        close(file->fd);
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
        close(TAKE_FD(file->fd));
    }
    return r;
}

bool source_file_absent(int result) {
    /* EOPNOTSUPP is what /proc/pressure answers where the kernel was booted with psi=0. */
    return result == -ENOENT || result == -ENOTDIR || result == -EOPNOTSUPP;
}
