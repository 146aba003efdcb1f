#include "collectors/cgroup/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/scan.h"

enum { MAX_DEPTH = 32, MAX_CONTROLLERS_BYTES = 4096 };

static const struct {
    const char *name;
    enum cgroup_controller controller;
} controllers[] = {
    {"blkio", CGROUP_IO}, {"cpu", CGROUP_CPU},       {"cpuacct", CGROUP_CPUACCT},
    {"io", CGROUP_IO},    {"memory", CGROUP_MEMORY}, {"pids", CGROUP_PIDS},
};

static const enum cgroup_controller v1_controllers[] = {
    CGROUP_CPUACCT, CGROUP_CPU, CGROUP_MEMORY, CGROUP_PIDS, CGROUP_IO,
};

const char *cgroup_mode_name(enum cgroup_mode mode) {
    static const char *const names[] = {
        [CGROUP_MODE_V1] = "v1",
        [CGROUP_MODE_V2] = "v2",
        [CGROUP_MODE_HYBRID] = "hybrid",
    };
    return names[mode];
}

static unsigned controller_of(const char *name, size_t len) {
    for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
        if (strlen(controllers[i].name) == len && memcmp(controllers[i].name, name, len) == 0) {
            return controllers[i].controller;
        }
    }
    return 0;
}

unsigned cgroup_controllers(const char *names, size_t len) {
    unsigned mask = 0;
    for (const char *end = names + len; names < end;) {
        size_t n = strcspn(names, ",");
        n = n < (size_t)(end - names) ? n : (size_t)(end - names);
        mask |= controller_of(names, n);
        names += n + 1;
    }
    return mask;
}

static bool is_unified(int fd) {
    return faccessat(fd, "cgroup.controllers", F_OK, 0) == 0;
}

/* "cpuset cpu io memory …" of the v2 root. */
static unsigned unified_controllers(int fd) {
    struct buf text CLEANUP_BUF = {0};
    unsigned mask = CGROUP_CORE | CGROUP_CPUACCT;
    if (file_read_at(fd, "cgroup.controllers", MAX_CONTROLLERS_BYTES, &text, NULL) < 0) {
        return mask;
    }
    const char *cursor = buf_str(&text);
    struct scan_word word;
    while (scan_word(&cursor, &word)) {
        mask |= controller_of(word.text, word.len);
    }
    return mask;
}

static bool same_directory(int a, int b) {
    struct stat first, second;
    return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* Takes over `fd` and `path`. */
static void add_row(struct cgroup_tree *tree, int *fd, char **path, bool unified, unsigned mask) {
    for (size_t i = 0; i < tree->n_rows; i++) {
        if (same_directory(tree->rows[i].fd, *fd)) { /* cpu is often a link to cpu,cpuacct */
            tree->rows[i].controllers |= mask;
            return;
        }
    }
    if (tree->n_rows < CGROUP_MAX_HIERARCHIES) {
        tree->rows[tree->n_rows++] = (struct cgroup_hierarchy){
            .path = TAKE(*path),
            .fd = TAKE_FD(*fd),
            .unified = unified,
            .controllers = mask,
        };
    }
}

static void add_child(struct cgroup_tree *tree, const char *cgroupfs, const char *name) {
    char *path CLEANUP_FREE = file_path_join(cgroupfs, name);
    int fd CLEANUP_CLOSE = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    bool unified = is_unified(fd);
    unsigned mask = unified ? unified_controllers(fd) : cgroup_controllers(name, strlen(name));
    if (mask != 0) {
        add_row(tree, &fd, &path, unified, mask);
    }
}

static int add_children(struct cgroup_tree *tree, const char *cgroupfs, struct error *err) {
    struct dirent **entries = NULL;
    int n = scandir(cgroupfs, &entries, NULL, alphasort);
    if (n < 0) {
        return error_set(err, -ENODEV, "open directory %s: %m", cgroupfs);
    }
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.' && entries[i]->d_type != DT_REG) {
            add_child(tree, cgroupfs, entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
    return 0;
}

/* A v2 hierarchy beside v1 ones also has the times of cpu.stat; the v1 controller has priority, as
 * not every cgroup exists in both. */
static void settle(struct cgroup_tree *tree) {
    unsigned v1 = 0;
    bool unified = false;
    for (size_t i = 0; i < tree->n_rows; i++) {
        v1 |= tree->rows[i].unified ? 0 : tree->rows[i].controllers;
        unified = unified || tree->rows[i].unified;
    }
    for (size_t i = 0; i < tree->n_rows; i++) {
        tree->rows[i].controllers &= tree->rows[i].unified ? ~v1 : ~0U;
    }
    tree->mode = v1 == 0 ? CGROUP_MODE_V2 : unified ? CGROUP_MODE_HYBRID : CGROUP_MODE_V1;
    for (size_t c = ARRAY_LEN(v1_controllers); c > 0; c--) {
        for (size_t i = 0; i < tree->n_rows; i++) {
            tree->primary =
                (tree->rows[i].controllers & v1_controllers[c - 1]) != 0 ? i : tree->primary;
        }
    }
}

int cgroup_tree_open(struct cgroup_tree *tree, const char *cgroupfs, struct error *err) {
    *tree = (struct cgroup_tree){0};
    int fd CLEANUP_CLOSE = open(cgroupfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return error_set(err, -ENODEV, "open directory %s: %m", cgroupfs);
    }
    if (is_unified(fd)) {
        char *path CLEANUP_FREE = mem_strdup(cgroupfs);
        add_row(tree, &fd, &path, true, unified_controllers(fd));
    } else {
        int r = add_children(tree, cgroupfs, err);
        if (r < 0) {
            return r;
        }
    }
    if (tree->n_rows == 0) {
        return error_set(err, -ENODEV, "%s: no cgroup hierarchy is mounted there", cgroupfs);
    }
    settle(tree);
    return 0;
}

void cgroup_tree_close(struct cgroup_tree *tree) {
    for (size_t i = 0; i < tree->n_rows; i++) {
        close(tree->rows[i].fd);
        free(tree->rows[i].path);
    }
    *tree = (struct cgroup_tree){0};
}

DIR *cgroup_open_directory(int parent, const char *name) {
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL && fd >= 0) {
        close(fd);
    }
    return directory;
}

struct walk {
    struct buf *path;
    cgroup_visit *visit;
    void *context;
};

static void walk_below(const struct walk *walk, DIR *directory, size_t depth);

/* A directory that has no subdirectory has two links: itself and its name. */
static void descend(const struct walk *walk, int parent, const char *name, size_t depth) {
    struct stat stat;
    if (depth == MAX_DEPTH || fstatat(parent, name, &stat, AT_SYMLINK_NOFOLLOW) < 0 ||
        stat.st_nlink == 2) {
        return;
    }
    DIR *directory = cgroup_open_directory(parent, name);
    if (directory != NULL) {
        walk_below(walk, directory, depth + 1);
        closedir(directory);
    }
}

static void walk_below(const struct walk *walk, DIR *directory, size_t depth) {
    struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        size_t len = walk->path->len;
        buf_add_char(walk->path, '/');
        buf_add_str(walk->path, entry->d_name);
        if (walk->visit(walk->context, walk->path->data, entry->d_ino, depth)) {
            descend(walk, dirfd(directory), entry->d_name, depth);
        }
        buf_truncate(walk->path, len);
    }
}

static size_t depth_of(const char *path) {
    size_t depth = 0;
    for (; *path != '\0'; path++) {
        depth += *path == '/' ? 1 : 0;
    }
    return depth;
}

int cgroup_tree_walk(const struct cgroup_hierarchy *hierarchy, const char *from, struct buf *path,
                     cgroup_visit *visit, void *context, struct error *err) {
    DIR *directory = cgroup_open_directory(hierarchy->fd, from[0] == '/' ? from + 1 : ".");
    if (directory == NULL) {
        return error_set(err, -errno, "open directory %s%s: %m", hierarchy->path, from);
    }
    struct walk walk = {.path = path, .visit = visit, .context = context};
    buf_reset(path);
    buf_add_str(path, from);
    walk_below(&walk, directory, depth_of(from) + 1);
    closedir(directory);
    return 0;
}

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

/* One read returns the whole text, unless it fills the buffer. */
static int read_all(int fd, struct buf *out) {
    buf_reset(out);
    for (;;) {
        char *to = buf_reserve(out, READ_ROOM);
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
        place->kept = mem_alloc(cgroup_n_files * sizeof(int));
        for (size_t i = 0; i < cgroup_n_files; i++) {
            place->kept[i] = -1;
        }
    }
    place->kept[file] = TAKE_FD(*fd);
    place->hot = hot;
    hot->n_kept++;
}

static int read_text(struct cgroup_place *place, struct cgroup_hot *hot, int dirfd, size_t file,
                     struct buf *out) {
    if (place->kept != NULL && place->kept[file] >= 0) {
        if (read_all(place->kept[file], out) == 0) {
            return 0;
        }
        drop_kept(place, file); /* it may have been hidden and shown again */
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
        r = cgroup_files[file].parse(&cgroup_files[file], buf_str(text), out);
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
    /* The row before is the file that this one replaces. */
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

/* A runtime sets the limits after it has created the cgroup: a new one is read again soon. */
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
