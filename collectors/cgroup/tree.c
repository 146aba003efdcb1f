#include "collectors/cgroup/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
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

/* "cpu,cpuacct": the name of a v1 hierarchy's directory. */
static unsigned controllers_of_name(const char *name) {
    unsigned mask = 0;
    while (*name != '\0') {
        size_t len = strcspn(name, ",");
        mask |= controller_of(name, len);
        name += len + (name[len] == ',' ? 1 : 0);
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
    int fd CLEANUP_CLOSE = path != NULL ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return;
    }
    bool unified = is_unified(fd);
    unsigned mask = unified ? unified_controllers(fd) : controllers_of_name(name);
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

static int add_unified_root(struct cgroup_tree *tree, const char *cgroupfs, int *fd) {
    char *path CLEANUP_FREE = strdup(cgroupfs);
    if (path == NULL) {
        return -ENOMEM;
    }
    add_row(tree, fd, &path, true, unified_controllers(*fd));
    return 0;
}

/* A v2 hierarchy beside v1 ones also tells the times of cpu.stat; the v1 controller has priority,
 * as not every cgroup need exist in both. */
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
    int r =
        is_unified(fd) ? add_unified_root(tree, cgroupfs, &fd) : add_children(tree, cgroupfs, err);
    if (r < 0) {
        return r;
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
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    walk_below(walk, directory, depth + 1);
    closedir(directory);
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
        if (!walk->path->failed &&
            walk->visit(walk->context, walk->path->data, entry->d_ino, depth)) {
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
    const char *name = from[0] == '/' ? from + 1 : ".";
    int fd = openat(hierarchy->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        int r = error_set(err, -errno, "open directory %s%s: %m", hierarchy->path, from);
        if (fd >= 0) {
            close(fd);
        }
        return r;
    }
    struct walk walk = {.path = path, .visit = visit, .context = context};
    buf_reset(path);
    buf_add_str(path, from);
    walk_below(&walk, directory, depth_of(from) + 1);
    closedir(directory);
    return 0;
}
