#include "exporter/push_recover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/file.h"
#include "exporter/push_state.h"
#include "exporter/push_table.h"

enum { MAX_FILE_BYTES = 1 << 30 };

void push_remains_finish(struct push_remains *remains) {
    buf_finish(&remains->file);
    *remains = (struct push_remains){0};
}

int push_recover_table(const char *path, struct push_remains *ret_remains, struct error *err) {
    struct push_remains remains = {0};
    int r = file_read_stored(path, MAX_FILE_BYTES, &remains.file, err);
    if (r == 0) {
        r = push_table_recover(remains.file.data, remains.file.len, &remains.offset,
                               &remains.same_boot, err);
    }
    if (r < 0) {
        push_remains_finish(&remains);
        return r;
    }
    remains.len = remains.file.len - remains.offset;
    *ret_remains = remains;
    return 0;
}

int push_recover_state(const char *path, struct push_remains *ret_remains, struct error *err) {
    struct push_remains remains = {0};
    int r = file_read_stored(path, MAX_FILE_BYTES, &remains.file, err);
    if (r == 0) {
        r = push_state_decode(remains.file.data, remains.file.len, &remains.offset, &remains.len,
                              &remains.n_damaged, err);
    }
    if (r < 0) {
        push_remains_finish(&remains);
        return r;
    }
    *ret_remains = remains;
    return 0;
}

void push_recover_set_aside(const char *path, struct buf *ret_words) {
    struct buf name CLEANUP_BUF = {0};
    buf_printf(&name, "%s.bad-%lld", path, (long long)time(NULL));
    if (rename(path, buf_str(&name)) < 0) {
        buf_printf(ret_words, "rename %s: %m", path);
    } else {
        buf_printf(ret_words, "set aside as %s", buf_str(&name));
    }
}

static int make_directory(const char *path, struct error *err) {
    char *directory CLEANUP_FREE = strdup(path);
    if (directory == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    char *slash = strrchr(directory, '/');
    if (slash == NULL || slash == directory) {
        return 0;
    }
    *slash = '\0';
    if (mkdir(directory, 0755) < 0 && errno != EEXIST) {
        return error_set(err, -errno, "make directory %s: %m", directory);
    }
    return 0;
}

/* The table itself is exchanged by renaming, so the lock has a file of its own. The kernel takes it
 * off when the last thread of its process is gone. */
int push_recover_lock(const char *path, int *ret_fd, struct error *err) {
    int r = make_directory(path, err);
    if (r < 0) {
        return r;
    }
    struct buf name CLEANUP_BUF = {0};
    buf_printf(&name, "%s.lock", path);
    int fd CLEANUP_CLOSE = open(buf_str(&name), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return error_set(err, -errno, "open %s: %m", buf_str(&name));
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int code = errno == EWOULDBLOCK ? EBUSY : errno;
        return code == EBUSY ? error_set(err, -EBUSY, "%s is in use by another waap", path)
                             : error_set(err, -code, "lock %s: %m", buf_str(&name));
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}
