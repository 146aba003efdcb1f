#include "profiler/run_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/core/file.h"

int run_output_make(const char *dir, struct error *err) {
    char *path CLEANUP_FREE = strdup(dir);
    if (path == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    if (mkdir(path, 0755) < 0 && errno != EEXIST) {
        return error_set(err, -errno, "make %s: %m", dir);
    }
    return 0;
}

void run_output_add_name(struct buf *out, const char *text) {
    enum { MAX_LEN = 200 }; /* of 255 */
    for (size_t i = 0; i < MAX_LEN && text[i] != '\0'; i++) {
        buf_add_char(out, text[i] == '/' ? '_' : text[i]);
    }
}

int run_output_open(const char *dir, const char *name, struct error *err) {
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/output", dir);
    if (mkdir(buf_str(&path), 0755) < 0 && errno != EEXIST) {
        return error_set(err, -errno, "make %s: %m", buf_str(&path));
    }
    buf_printf(&path, "/%s.log", name);
    int fd = open(buf_str(&path), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    return fd >= 0 ? fd : error_set(err, -errno, "open %s: %m", buf_str(&path));
}

char *run_output_resolve(const char *base, const char *path, struct error *err) {
    char *joined CLEANUP_FREE =
        path[0] == '/' || base == NULL ? strdup(path) : file_path_join(base, path);
    char *resolved = joined != NULL ? realpath(joined, NULL) : NULL;
    if (resolved == NULL) {
        error_set(err, -errno, "%s: %m", joined != NULL ? joined : path);
    }
    return resolved;
}

char *run_output_folder(const char *file) {
    const char *slash = strrchr(file, '/');
    if (slash == NULL) {
        return strdup(".");
    }
    return slash == file ? strdup("/") : strndup(file, (size_t)(slash - file));
}
