#include "exporter/demo/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"

enum { DIR_MAX_TRIES = 10, DIR_MAX_OPEN = 16 };

static const char dir_prefix[] = "waap-demo-";

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *place) {
    (void)stat;
    (void)kind;
    (void)place;
    remove(path);
    return 0;
}

static void remove_all(const char *path) {
    nftw(path, remove_one, DIR_MAX_OPEN, FTW_DEPTH | FTW_MOUNT | FTW_PHYS);
}

static int open_dir(const char *path) {
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void remove_if_left(const char *path) {
    int fd CLEANUP_CLOSE = open_dir(path);
    struct stat stat;
    bool ours = fd >= 0 && fstat(fd, &stat) == 0 && stat.st_uid == geteuid();
    if (ours && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        remove_all(path);
    }
}

static void remove_left(const char *parent) {
    DIR *list = opendir(parent);
    if (list == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        if (strncmp(entry->d_name, dir_prefix, strlen(dir_prefix)) == 0) {
            char *path CLEANUP_FREE = file_path_join(parent, entry->d_name);
            if (path != NULL) {
                remove_if_left(path);
            }
        }
    }
    closedir(list);
}

/* Between making and locking, somebody else may have taken the directory for a left one. */
static bool is_still_there(const struct demo_dir *dir) {
    struct stat ours, there;
    return fstat(dir->fd, &ours) == 0 && stat(dir->path, &there) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

static int make(struct demo_dir *dir, const char *parent, struct error *err) {
    for (int i = 0; i < DIR_MAX_TRIES; i++) {
        char *path CLEANUP_FREE = NULL;
        if (asprintf(&path, "%s/%sXXXXXX", parent, dir_prefix) < 0) {
            path = NULL;
            return error_set(err, -ENOMEM, "out of memory");
        }
        if (mkdtemp(path) == NULL) {
            return error_set(err, -errno, "make a directory in %s: %m", parent);
        }
        *dir = (struct demo_dir){.path = TAKE(path)};
        dir->fd = open_dir(dir->path);
        if (dir->fd >= 0 && flock(dir->fd, LOCK_EX) == 0 && is_still_there(dir)) {
            return 0;
        }
        demo_dir_finish(dir);
    }
    return error_set(err, -EBUSY, "make a directory in %s: no lock to be had", parent);
}

int demo_dir_init(struct demo_dir *dir, const char *const *parents, struct error *err) {
    int r = error_set(err, -ENOENT, "nowhere to make a directory");
    for (; *parents != NULL && r < 0; parents++) {
        remove_left(*parents);
        r = make(dir, *parents, err);
    }
    return r;
}

void demo_dir_finish(struct demo_dir *dir) {
    if (dir->path == NULL) {
        return;
    }
    remove_all(dir->path);
    free(TAKE(dir->path));
    if (dir->fd >= 0) {
        close(TAKE_FD(dir->fd));
    }
}
