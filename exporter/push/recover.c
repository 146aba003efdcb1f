#include "exporter/push/recover.h"

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
#include "exporter/push/state.h"
#include "exporter/push/table.h"

/* MAX_TABLE_BYTES: see push.table-size. Around its pages a state file has a header and their
 * checks, a thousandth. */
enum {
    MAX_TABLE_BYTES = 1 << 30,
    MAX_FILE_BYTES = MAX_TABLE_BYTES + (MAX_TABLE_BYTES >> 8),
    MAX_SET_ASIDE = 100, /* in one second */
};

void push_remains_finish(struct push_remains *remains) {
    buf_finish(&remains->file);
    *remains = (struct push_remains){0};
}

/* Whether the file was never one of ours: all of these begin with "waap". One of them that is
 * damaged has a byte less of that, or only zeroes. */
static bool is_foreign(const struct buf *file) {
    static const char begin[] = {'w', 'a', 'a', 'p'};
    size_t n_like = 0, n_zero = 0;
    for (size_t i = 0; i < sizeof(begin) && i < file->len; i++) {
        n_like += file->data[i] == begin[i];
        n_zero += file->data[i] == '\0';
    }
    return n_like + 1 < sizeof(begin) && n_zero < sizeof(begin) && file->len > 0;
}

/* Says whose fault it is that a file cannot be read. */
static int blame(const char *path, const struct push_remains *remains, int code,
                 struct error *err) {
    return error_set(err, is_foreign(&remains->file) ? -EMEDIUMTYPE : code, "%s: %s", path,
                     err->text);
}

int push_recover_table(const char *path, struct push_remains *ret_remains, struct error *err) {
    struct push_remains remains = {0};
    int r = file_read_own(path, MAX_FILE_BYTES, &remains.file, err);
    if (r == 0) {
        r = push_table_recover(remains.file.data, remains.file.len, &remains.offset,
                               &remains.same_boot, err);
        r = r < 0 ? blame(path, &remains, r, err) : 0;
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
    int r = file_read_own(path, MAX_FILE_BYTES, &remains.file, err);
    if (r == 0) {
        r = push_state_decode(remains.file.data, remains.file.len, &remains.offset, &remains.len,
                              &remains.n_damaged, err);
        r = r < 0 ? blame(path, &remains, r, err) : 0;
    }
    if (r < 0) {
        push_remains_finish(&remains);
        return r;
    }
    *ret_remains = remains;
    return 0;
}

/* A name for it that nothing has; its lock keeps others from taking the same. */
static int find_name(const char *path, struct buf *ret_name, struct error *err) {
    long long seconds = (long long)time(NULL);
    struct stat st;
    for (int i = 0; i < MAX_SET_ASIDE; i++) {
        buf_reset(ret_name);
        buf_printf(ret_name, "%s.bad-%lld", path, seconds);
        if (i > 0) {
            buf_printf(ret_name, "-%d", i);
        }
        if (ret_name->failed) {
            return error_set(err, -ENOMEM, "out of memory");
        }
        if (lstat(buf_str(ret_name), &st) < 0) {
            return errno == ENOENT ? 0
                                   : error_set(err, -errno, "look for %s: %m", buf_str(ret_name));
        }
    }
    return error_set(err, -EEXIST, "%s is there already", buf_str(ret_name));
}

int push_recover_set_aside(const char *path, struct buf *ret_name, struct error *err) {
    struct stat st;
    if (lstat(path, &st) < 0) {
        return error_set(err, -errno, "look for %s: %m", path);
    }
    /* A directory or /dev/null was given by mistake, and others need it where it is. */
    if (!S_ISREG(st.st_mode)) {
        return error_set(err, -EINVAL, "%s is no file", path);
    }
    int r = find_name(path, ret_name, err);
    if (r == 0 && rename(path, buf_str(ret_name)) < 0) {
        r = error_set(err, -errno, "rename %s to %s: %m", path, buf_str(ret_name));
    }
    return r;
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
    if (mkdir(directory, 0700) < 0 && errno != EEXIST) {
        return error_set(err, -errno, "make directory %s: %m", directory);
    }
    return 0;
}

/* The file itself is exchanged by renaming, so the lock has a file of its own. The kernel takes it
 * off when the last thread of its process is gone. */
int push_recover_lock(const char *path, int *ret_fd, struct error *err) {
    int r = make_directory(path, err);
    if (r < 0) {
        return r;
    }
    struct buf name CLEANUP_BUF = {0};
    buf_printf(&name, "%s.lock", path);
    int fd CLEANUP_CLOSE = file_open_own(buf_str(&name), O_RDWR | O_CREAT, err);
    if (fd < 0) {
        return fd;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int code = errno == EWOULDBLOCK ? EBUSY : errno;
        return code == EBUSY ? error_set(err, -EBUSY, "%s is in use by another waap", path)
                             : error_set(err, -code, "lock %s: %m", buf_str(&name));
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}
