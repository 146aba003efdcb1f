#include "collectors/source/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"

/* In a directory with the sticky bit only the owner of an entry can replace it. */
static bool others_can_write(const struct stat *info) {
    bool sticky = S_ISDIR(info->st_mode) && (info->st_mode & S_ISVTX) != 0;
    return (info->st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky;
}

/* `checked` is the part of `path` that ends with the file that `fd` refers to. */
static int check(int fd, const char *path, int checked, struct error *err) {
    struct stat info;
    if (fstat(fd, &info) < 0) {
        return error_set(err, -errno, "%s: %m", path);
    }
    if (S_ISLNK(info.st_mode)) {
        return error_set(err, -EPERM, "%s: not run: %.*s is a symbolic link", path, checked, path);
    }
    if (info.st_uid != 0 && info.st_uid != geteuid()) {
        return error_set(err, -EPERM, "%s: not run: %.*s belongs to user %u", path, checked, path,
                         (unsigned)info.st_uid);
    }
    if (others_can_write(&info)) {
        return error_set(err, -EPERM, "%s: not run: %.*s is writable by others than its owner",
                         path, checked, path);
    }
    bool last = path[checked + (int)strspn(path + checked, "/")] == '\0';
    if (last && !S_ISREG(info.st_mode)) {
        return error_set(err, -EACCES, "%s: not a regular file", path);
    }
    return 0;
}

int program_open(const char *path, struct error *err) {
    if (path[0] != '/') {
        return error_set(err, -EINVAL, "%s: not an absolute path", path);
    }
    char *names CLEANUP_FREE = strdup(path);
    if (names == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    int fd CLEANUP_CLOSE = open("/", O_PATH | O_CLOEXEC);
    int r = fd < 0 ? error_set(err, -errno, "/: %m") : check(fd, path, 1, err);
    char *rest = NULL;
    for (char *name = strtok_r(names, "/", &rest); r == 0 && name != NULL;
         name = strtok_r(NULL, "/", &rest)) {
        int next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) {
            return error_set(err, -errno, "%s: %m", path);
        }
        close(fd);
        fd = next;
        r = check(fd, path, (int)(name - names + (ptrdiff_t)strlen(name)), err);
    }
    return r < 0 ? r : TAKE_FD(fd);
}
