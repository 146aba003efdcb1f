#include "profiler/run/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectors/source/entries.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/scan.h"
#include "profiler/run/process.h"

enum { MAX_KEPT_FILES = 32, MAX_BYTES = 1 << 20, NAME_BYTES = 64 };

/* ---- where a process is ---- */

char *run_cgroup_find_path(const char *text, unsigned controllers) {
    for (const char *end; *text != '\0'; text = end + (*end == '\n' ? 1 : 0)) {
        end = strchrnul(text, '\n');
        const char *names =
            memchr(text, ':', (size_t)(end - text)); /* "4:memory:/a/b", "0::/a/b" */
        const char *path = names != NULL ? memchr(names + 1, ':', (size_t)(end - names - 1)) : NULL;
        if (path == NULL) {
            continue;
        }
        size_t len = (size_t)(path - names - 1);
        bool unified = len == 0 && strncmp(text, "0:", 2) == 0;
        if (controllers == 0 ? unified : (cgroup_controllers(names + 1, len) & controllers) != 0) {
            return mem_strndup(path + 1, (size_t)(end - path - 1));
        }
    }
    return NULL;
}

/* The path in one hierarchy. A container may see the paths of the host but have only its own cgroup
 * mounted; such a path does not exist there, and the root is the right one. The caller frees it. */
static char *path_in(const struct cgroup_hierarchy *row, const char *text) {
    char *path = run_cgroup_find_path(text, row->unified ? 0 : row->controllers);
    if (path != NULL && path[1] != '\0' && faccessat(row->fd, path + 1, F_OK, 0) < 0) {
        path[1] = '\0';
    }
    return path;
}

/* Opens the hierarchies and finds the paths of a process in them. */
static int locate(struct run_cgroup *cgroup, const char *procfs, const char *cgroupfs,
                  const char *pid, struct error *err) {
    struct buf name CLEANUP_BUF = {0};
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&name, "%s/%s/cgroup", procfs, pid);
    *cgroup = (struct run_cgroup){.hot = {.max_kept = MAX_KEPT_FILES}};
    cgroup_place_init(&cgroup->place);
    int r = cgroup_tree_open(&cgroup->tree, cgroupfs, err);
    r = r < 0 ? r : file_read(buf_str(&name), &text, err);
    for (size_t i = 0; r == 0 && i < cgroup->tree.n_rows; i++) {
        cgroup->paths[i] = path_in(&cgroup->tree.rows[i], buf_str(&text));
    }
    return r;
}

static int write_word(int dirfd, const char *file, const char *word) {
    int fd CLEANUP_CLOSE = openat(dirfd, file, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, word, strlen(word)) < 0 ? -errno : 0;
}

int run_cgroup_attach(struct run_cgroup *cgroup, const char *procfs, const char *cgroupfs,
                      pid_t pid, struct error *err) {
    char name[16];
    snprintf(name, sizeof(name), "%d", (int)pid);
    int r = locate(cgroup, procfs, cgroupfs, name, err);
    for (size_t i = 0; r == 0 && i < cgroup->tree.n_rows; i++) {
        /* The root never belongs to a container; it covers the whole machine. */
        if (cgroup->paths[i] != NULL && cgroup->paths[i][1] != '\0') {
            cgroup_place_enter(&cgroup->place, &cgroup->tree, i, cgroup->paths[i], 0);
        }
    }
    if (r < 0) {
        run_cgroup_finish(cgroup);
    }
    return r;
}

void run_cgroup_finish(struct run_cgroup *cgroup) {
    if (cgroup->hot.max_kept == 0) {
        return;
    }
    cgroup_place_finish(&cgroup->place);
    for (size_t i = 0; i < cgroup->tree.n_rows; i++) {
        if (cgroup->ours && cgroup->paths[i] != NULL) {
            unlinkat(cgroup->tree.rows[i].fd, cgroup->paths[i] + 1, AT_REMOVEDIR);
        }
        free(cgroup->paths[i]);
    }
    cgroup_tree_close(&cgroup->tree);
    cgroup_stats_finish(&cgroup->stats);
    buf_finish(&cgroup->scratch);
    *cgroup = (struct run_cgroup){0};
}

/* ---- using ---- */

int run_cgroup_enter(const struct run_cgroup *cgroup) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < cgroup->tree.n_rows; i++) {
        int dirfd = cgroup->place.fds[i];
        r = dirfd >= 0 ? write_word(dirfd, "cgroup.procs", "0") : 0;
    }
    return r;
}

static void add_io(const struct cgroup_stats *stats, struct run_usage *usage) {
    for (size_t i = 0; i < stats->n_devices; i++) {
        const double *values = stats->devices[i].values;
        double read = values[CGROUP_IO_READ_BYTES], written = values[CGROUP_IO_WRITTEN_BYTES];
        usage->read_bytes = (i > 0 ? usage->read_bytes : 0) + (isnan(read) ? 0 : read);
        usage->written_bytes = (i > 0 ? usage->written_bytes : 0) + (isnan(written) ? 0 : written);
    }
}

/* v1 counts user and system time in hundredths of a second, but their sum exactly. The sum is split
 * in the ratio of the two, and neither part ever decreases. */
static void share_cpu(struct run_cgroup *cgroup, const double *values, struct run_usage *usage) {
    double user = values[CGROUP_CPU_USER], system = values[CGROUP_CPU_SYSTEM];
    double sum = values[CGROUP_CPU_USAGE];
    usage->cpu_seconds = sum;
    if (isnan(sum) || isnan(user + system)) {
        usage->user_seconds = user;
        usage->system_seconds = system;
        return;
    }
    double share = user + system > 0 ? sum * system / (user + system) : 0;
    share = fmin(share, sum - cgroup->user_seconds);
    cgroup->system_seconds = fmax(cgroup->system_seconds, share);
    cgroup->user_seconds = fmax(cgroup->user_seconds, sum - cgroup->system_seconds);
    usage->user_seconds = cgroup->user_seconds;
    usage->system_seconds = cgroup->system_seconds;
}

bool run_cgroup_read(struct run_cgroup *cgroup, struct run_usage *ret_usage) {
    struct cgroup_stats *stats = &cgroup->stats;
    struct cgroup_reading reading = {&cgroup->tree, CGROUP_FOR_RUN, &cgroup->hot, &cgroup->scratch};
    cgroup_place_read(&cgroup->place, &reading, clock_monotonic_ns(), stats, NULL);
    const double *values = stats->values;
    *ret_usage = (struct run_usage){
        .throttled_seconds = values[CGROUP_CPU_THROTTLED],
        .memory_bytes = cgroup_stats_working_set(stats),
        .memory_peak_bytes = values[CGROUP_MEMORY_PEAK],
        .read_bytes = NAN,
        .written_bytes = NAN,
        .processes = values[CGROUP_PIDS_CURRENT],
    };
    share_cpu(cgroup, values, ret_usage);
    add_io(stats, ret_usage);
    return !isnan(ret_usage->cpu_seconds) || !isnan(values[CGROUP_MEMORY_CURRENT]);
}

static size_t kill_listed(int dirfd) {
    struct buf text CLEANUP_BUF = {0};
    size_t n = 0;
    file_read_at(dirfd, "cgroup.procs", MAX_BYTES, &text, NULL);
    const char *at = buf_str(&text);
    for (char *end;; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at) {
            return n;
        }
        if (pid > 0) {
            kill((pid_t)pid, SIGKILL);
            n++;
        }
    }
}

/* cgroup.kill kills all processes at once, also those being forked. Without that file the caller
 * repeats the call until no process is listed. */
size_t run_cgroup_kill(struct run_cgroup *cgroup) {
    size_t n = 0;
    for (size_t i = 0; i < cgroup->tree.n_rows; i++) {
        if (cgroup->place.fds[i] < 0) {
            continue;
        }
        size_t here = kill_listed(cgroup->place.fds[i]);
        n = here > n ? here : n;
        if (here > 0 && cgroup->tree.rows[i].unified) {
            write_word(cgroup->place.fds[i], "cgroup.kill", "1");
        }
    }
    return n;
}

const char *run_cgroup_peak_source(const struct run_cgroup *cgroup) {
    if (isnan(cgroup->stats.values[CGROUP_MEMORY_PEAK])) {
        return NULL;
    }
    for (size_t i = 0; i < cgroup->tree.n_rows; i++) {
        const struct cgroup_hierarchy *row = &cgroup->tree.rows[i];
        if ((row->controllers & CGROUP_MEMORY) != 0) {
            return row->unified ? "memory.peak" : "max_usage";
        }
    }
    return NULL;
}

/* ---- creating ---- */

#define OUR_PREFIX "waap-run-"
#define SELF_SUFFIX ".self"

/* A run that was killed leaves its cgroup and the processes in it behind. */
static void remove_stale(const char *root, const char *home, int fd) {
    struct entries entries CLEANUP_ENTRIES = {0};
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s%s", root, home);
    entries_init(&entries, buf_str(&path), OUR_PREFIX);
    for (size_t i = 0; i < entries.n_names; i++) {
        if (!run_process_is_gone(strtol(entries.names[i] + strlen(OUR_PREFIX), NULL, 10))) {
            continue;
        }
        int stale CLEANUP_CLOSE = openat(fd, entries.names[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (stale >= 0) {
            kill_listed(stale);
        }
        unlinkat(fd, entries.names[i], AT_REMOVEDIR);
    }
}

/* Lists the useful controllers of a v2 cgroup, each prefixed by `sign`. */
static void list_controllers(int dirfd, char sign, struct buf *out) {
    static const char *const wanted[] = {"memory", "io", "cpu", "pids"};
    struct buf text CLEANUP_BUF = {0};
    file_read_at(dirfd, "cgroup.controllers", MAX_BYTES, &text, NULL);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        const char *cursor = buf_str(&text);
        struct scan_word word;
        while (scan_word(&cursor, &word)) {
            if (scan_word_equal(word, wanted[i])) {
                buf_printf(out, "%s%c%s", out->len > 0 ? " " : "", sign, wanted[i]);
            }
        }
    }
}

/* A v2 cgroup has the files of the controllers that its parent enables for its children. Except for
 * the root, a cgroup that contains processes cannot enable memory or io (-EBUSY). It could enable
 * the others, but then no process may enter a child; so all are enabled in one write, and only if
 * memory or io is among them. */
static int enable_controllers(int dirfd) {
    struct buf order CLEANUP_BUF = {0};
    list_controllers(dirfd, '+', &order);
    const char *text = buf_str(&order);
    bool needs_empty = strncmp(text, "+memory", 7) == 0 || strncmp(text, "+io", 3) == 0;
    return needs_empty ? write_word(dirfd, "cgroup.subtree_control", text) : 0;
}

static void self_name(char name[static NAME_BYTES]) {
    snprintf(name, NAME_BYTES, OUR_PREFIX "%d" SELF_SUFFIX, (int)getpid());
}

/* If alone in our cgroup, as under systemd-run, we move into a child to enable controllers. */
static void move_self_down(int dirfd) {
    struct buf pids CLEANUP_BUF = {0};
    char name[NAME_BYTES], alone[16];
    self_name(name);
    snprintf(alone, sizeof(alone), "%d\n", (int)getpid());
    file_read_at(dirfd, "cgroup.procs", MAX_BYTES, &pids, NULL);
    if (strcmp(buf_str(&pids), alone) != 0 || mkdirat(dirfd, name, 0755) < 0) {
        return;
    }
    int side CLEANUP_CLOSE = openat(dirfd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (side < 0 || write_word(side, "cgroup.procs", "0") < 0) {
        unlinkat(dirfd, name, AT_REMOVEDIR);
        return;
    }
    enable_controllers(dirfd);
}

/* Opens our own cgroup, or the one that it was before we moved down, and cuts `path` to it. */
static int open_home(const struct cgroup_hierarchy *row, char *path) {
    char name[NAME_BYTES];
    char *last = strrchr(path, '/');
    self_name(name);
    if (last != NULL && strcmp(last + 1, name) == 0) {
        last[last == path ? 1 : 0] = '\0';
    }
    return openat(row->fd, path[1] != '\0' ? path + 1 : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int create_in(struct run_cgroup *cgroup, size_t row, const char *name, struct error *err) {
    const struct cgroup_hierarchy *hierarchy = &cgroup->tree.rows[row];
    char *home = cgroup->paths[row];
    int fd CLEANUP_CLOSE = open_home(hierarchy, home);
    if (fd < 0) {
        return error_set(err, -errno, "open %s%s: %m", hierarchy->path, home);
    }
    remove_stale(hierarchy->path, home, fd);
    if (hierarchy->unified && enable_controllers(fd) == -EBUSY) {
        move_self_down(fd);
    }
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/%s", home[1] != '\0' ? home : "", name);
    if (mkdirat(fd, name, 0755) < 0) {
        return error_set(err, -errno, "create %s%s: %m", hierarchy->path, buf_str(&path));
    }
    free(cgroup->paths[row]);
    cgroup->paths[row] = buf_take(&path);
    return 0;
}

/* Hierarchies in which no cgroup can be created are left out. */
static int create_all(struct run_cgroup *cgroup, struct error *err) {
    int result = error_set(err, -ENODEV, "the cgroup of this process is not mounted");
    bool any = false;
    static unsigned n_created; /* one process starts several runs */
    const char *name = cgroup->name;
    snprintf(cgroup->name, sizeof(cgroup->name), OUR_PREFIX "%d.%u", (int)getpid(), n_created++);
    for (size_t i = 0; i < cgroup->tree.n_rows; i++) {
        int r = cgroup->paths[i] != NULL ? create_in(cgroup, i, name, any ? NULL : err) : -ENODEV;
        if (r < 0) {
            free(TAKE(cgroup->paths[i]));
            result = any ? result : r;
        } else {
            any = true;
            cgroup_place_enter(&cgroup->place, &cgroup->tree, i, cgroup->paths[i], 0);
        }
    }
    return any ? 0 : result;
}

int run_cgroup_create(struct run_cgroup *cgroup, const char *procfs, const char *cgroupfs,
                      struct error *err) {
    int r = locate(cgroup, procfs, cgroupfs, "self", err);
    r = r < 0 ? r : create_all(cgroup, err);
    if (r < 0) {
        run_cgroup_finish(cgroup);
    }
    cgroup->ours = r == 0;
    return r;
}

static void move_self_up(const struct cgroup_hierarchy *row, char *path) {
    char name[NAME_BYTES];
    struct buf order CLEANUP_BUF = {0};
    self_name(name);
    int home CLEANUP_CLOSE = open_home(row, path);
    if (home < 0 || faccessat(home, name, F_OK, 0) < 0) {
        return;
    }
    list_controllers(home, '-', &order);
    write_word(home, "cgroup.subtree_control", buf_str(&order));
    write_word(home, "cgroup.procs", "0");
    unlinkat(home, name, AT_REMOVEDIR);
}

void run_cgroup_restore(const char *procfs, const char *cgroupfs) {
    struct run_cgroup cgroup;
    int r = locate(&cgroup, procfs, cgroupfs, "self", NULL);
    for (size_t i = 0; r == 0 && i < cgroup.tree.n_rows; i++) {
        if (cgroup.tree.rows[i].unified && cgroup.paths[i] != NULL) {
            move_self_up(&cgroup.tree.rows[i], cgroup.paths[i]);
        }
    }
    run_cgroup_finish(&cgroup);
}
