#include "collectors/cgroup/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

#define FIRST_REFRESH_NS CLOCK_NS_PER_SEC
#define LAST_REFRESH_NS (60 * CLOCK_NS_PER_SEC)

enum {
    MAX_FILE_BYTES = 1 << 20,
    READ_ROOM = 8192,
    MAX_SHOWN = 120, /* of a text that is not understood */
};

void cgroup_place_init(struct cgroup_place *place) {
    *place = (struct cgroup_place){0};
    for (size_t i = 0; i < CGROUP_MAX_HIERARCHIES; i++) {
        place->fds[i] = -1;
    }
}

static void drop_kept(struct cgroup_place *place, size_t file) {
    if (place->kept != NULL && place->kept[file] >= 0) {
        close(TAKE_FD(place->kept[file]));
        place->hot->n_kept--;
    }
}

void cgroup_place_finish(struct cgroup_place *place) {
    for (size_t i = 0; i < cgroup_n_files; i++) {
        drop_kept(place, i);
    }
    free(TAKE(place->kept));
    for (size_t i = 0; i < CGROUP_MAX_HIERARCHIES; i++) {
        cgroup_place_leave(place, i);
    }
}

void cgroup_place_leave(struct cgroup_place *place, size_t row) {
    if (place->fds[row] >= 0) {
        close(TAKE_FD(place->fds[row]));
    }
    place->inodes[row] = 0;
}

int cgroup_place_enter(struct cgroup_place *place, const struct cgroup_tree *tree, size_t row,
                       const char *path, uint64_t inode) {
    if (place->fds[row] >= 0 && (inode == 0 || place->inodes[row] == inode)) {
        return 0;
    }
    cgroup_place_leave(place, row);
    for (size_t i = 0; i < cgroup_n_files; i++) {
        drop_kept(place, i);
    }
    path += strspn(path, "/");
    int fd CLEANUP_CLOSE = openat(tree->rows[row].fd, path[0] != '\0' ? path : ".",
                                  O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    struct stat stat;
    if (inode == 0 && fstat(fd, &stat) == 0) {
        inode = stat.st_ino;
    }
    place->inodes[row] = inode;
    place->fds[row] = TAKE_FD(fd);
    place->refresh_ns = 0;
    place->interval_ns = 0;
    return 0;
}

bool cgroup_place_absent(int result) {
    return result == -ENOENT || result == -ENODEV || result == -EOPNOTSUPP || result == -ESRCH ||
           result == -ENOTDIR;
}

/* One read gets the whole text: the kernel makes these in one piece. Only where it fills the room
 * is there more. */
static int read_all(int fd, struct buf *out) {
    buf_reset(out);
    for (;;) {
        char *to = buf_reserve(out, READ_ROOM);
        if (to == NULL) {
            return -ENOMEM;
        }
        ssize_t n = pread(fd, to, READ_ROOM, (off_t)out->len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -errno;
        }
        out->len += (size_t)n;
        out->data[out->len] = '\0';
        if (n < READ_ROOM) {
            return 0;
        }
        if (out->len > MAX_FILE_BYTES) {
            return -EFBIG;
        }
    }
}

/* Keeps the file for the next time, if there is room. */
static void keep(struct cgroup_place *place, struct cgroup_hot *hot, size_t file, int *fd) {
    if (hot == NULL || cgroup_files[file].limit || hot->n_kept >= hot->max_kept) {
        return;
    }
    if (place->kept == NULL) {
        place->kept = malloc(cgroup_n_files * sizeof(int));
        for (size_t i = 0; place->kept != NULL && i < cgroup_n_files; i++) {
            place->kept[i] = -1;
        }
    }
    if (place->kept != NULL) {
        place->kept[file] = TAKE_FD(*fd);
        place->hot = hot;
        hot->n_kept++;
    }
}

static int read_text(struct cgroup_place *place, struct cgroup_hot *hot, int dirfd, size_t file,
                     struct buf *out) {
    if (place->kept != NULL && place->kept[file] >= 0) {
        if (read_all(place->kept[file], out) == 0) {
            return 0;
        }
        drop_kept(place, file); /* a file that was hidden and is back needs to be opened again */
    }
    int fd CLEANUP_CLOSE =
        openat(dirfd, cgroup_files[file].name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    int r = read_all(fd, out);
    if (r == 0) {
        keep(place, hot, file, &fd);
    }
    return r;
}

static int read_file(struct cgroup_place *place, const struct cgroup_reading *reading, size_t row,
                     size_t file, struct cgroup_stats *out, struct error *err) {
    const char *root = reading->tree->rows[row].path, *name = cgroup_files[file].name;
    struct buf *text = reading->scratch;
    int r = read_text(place, reading->hot, place->fds[row], file, text);
    if (cgroup_place_absent(r)) {
        place->missing |= UINT64_C(1) << file;
        return 0;
    }
    if (r == 0) {
        r = cgroup_files[file].parse(buf_str(text), out);
    }
    if (r == -EINVAL) {
        int shown = (int)strcspn(buf_str(text), "\n");
        return error_set(err, r, "%s/…/%s: not understood: \"%.*s\"", root, name,
                         shown < MAX_SHOWN ? shown : MAX_SHOWN, buf_str(text));
    }
    return r < 0 ? error_set(err, r, "%s/…/%s: %s", root, name, strerror(-r)) : 0;
}

static bool wanted(const struct cgroup_place *place, size_t file, bool limits) {
    const struct cgroup_file *row = &cgroup_files[file];
    if ((place->missing & UINT64_C(1) << file) != 0 || (row->limit && !limits)) {
        return false;
    }
    /* The file that this one stands in for is the row before. */
    return row->unless == NULL || (file > 0 && (place->missing >> (file - 1) & 1) != 0);
}

static int read_row(struct cgroup_place *place, const struct cgroup_reading *reading, size_t row,
                    bool limits, struct cgroup_stats *out, struct error *err) {
    const struct cgroup_hierarchy *hierarchy = &reading->tree->rows[row];
    int result = 0;
    for (size_t i = 0; i < cgroup_n_files; i++) {
        const struct cgroup_file *file = &cgroup_files[i];
        if (file->unified != hierarchy->unified ||
            (file->controller & hierarchy->controllers) == 0 ||
            (file->readers & reading->reader) == 0 || !wanted(place, i, limits)) {
            continue;
        }
        int r = read_file(place, reading, row, i, out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    return result;
}

/* A runtime sets the limits only after it has made the cgroup: what is young is looked at sooner.
 */
static void plan_refresh(struct cgroup_place *place, int64_t now_ns) {
    int64_t next_ns = place->interval_ns == 0 ? FIRST_REFRESH_NS : 2 * place->interval_ns;
    place->interval_ns = next_ns < LAST_REFRESH_NS ? next_ns : LAST_REFRESH_NS;
    place->refresh_ns = now_ns + place->interval_ns;
}

int cgroup_place_read(struct cgroup_place *place, const struct cgroup_reading *reading,
                      int64_t now_ns, struct cgroup_stats *out, struct error *err) {
    cgroup_stats_reset(out);
    bool limits = now_ns >= place->refresh_ns;
    if (limits) {
        place->missing = 0;
        plan_refresh(place, now_ns);
    } else {
        memcpy(out->values, place->limits, sizeof(place->limits));
    }
    int result = 0;
    for (size_t i = 0; i < reading->tree->n_rows; i++) {
        if (place->fds[i] < 0) {
            continue;
        }
        int r = read_row(place, reading, i, limits, out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    memcpy(place->limits, out->values, sizeof(place->limits));
    return result;
}
