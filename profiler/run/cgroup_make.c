#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectors/source/entries.h"
#include "exporter/core/file.h"
#include "exporter/core/scan.h"
#include "profiler/run/cgroup_private.h"

enum { NAME_BYTES = 64 };

#define OUR_PREFIX "waap-run-"
#define SIDE_SUFFIX ".self"

static bool is_running(const char *name) {
    long pid = strtol(name + strlen(OUR_PREFIX), NULL, 10);
    return pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

/* A run that was killed leaves its cgroup behind, and what the application started there. */
static void remove_stale(const char *root, const char *home, int fd) {
    struct entries entries CLEANUP_ENTRIES = {0};
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s%s", root, home);
    if (entries_init(&entries, buf_str(&path), OUR_PREFIX) < 0) {
        return;
    }
    for (size_t i = 0; i < entries.n_names; i++) {
        if (is_running(entries.names[i])) {
            continue;
        }
        int stale CLEANUP_CLOSE = openat(fd, entries.names[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (stale >= 0) {
            run_cgroup_kill_listed(stale);
        }
        unlinkat(fd, entries.names[i], AT_REMOVEDIR);
    }
}

/* The controllers of a cgroup of v2 that are of use, each with that sign in front. */
static void list_controllers(int dirfd, char sign, struct buf *out) {
    static const char *const wanted[] = {"memory", "io", "cpu", "pids"};
    struct buf text CLEANUP_BUF = {0};
    if (file_read_at(dirfd, "cgroup.controllers", RUN_CGROUP_MAX_BYTES, &text, NULL) < 0) {
        return;
    }
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

/* In v2 a cgroup has the files of those controllers that the one above hands down, which it may do
 * only while no process is in it itself (but the root may). Some can be handed down all the same,
 * but then nobody may enter what is below: so all at once, and only with one that refuses. */
static int hand_down_controllers(int dirfd) {
    struct buf order CLEANUP_BUF = {0};
    list_controllers(dirfd, '+', &order);
    const char *text = buf_str(&order);
    bool refuses = strncmp(text, "+memory", 7) == 0 || strncmp(text, "+io", 3) == 0;
    return refuses ? run_cgroup_write(dirfd, "cgroup.subtree_control", text) : 0;
}

static bool is_alone(int dirfd) {
    struct buf text CLEANUP_BUF = {0};
    char ours[16];
    snprintf(ours, sizeof(ours), "%d\n", (int)getpid());
    return file_read_at(dirfd, "cgroup.procs", RUN_CGROUP_MAX_BYTES, &text, NULL) == 0 &&
           strcmp(buf_str(&text), ours) == 0;
}

static void side_name(char name[static NAME_BYTES]) {
    snprintf(name, NAME_BYTES, OUR_PREFIX "%d" SIDE_SUFFIX, (int)getpid());
}

/* A cgroup that we have for ourselves, such as systemd-run makes, hands down once we have stepped
 * aside. */
static void step_aside(int dirfd) {
    char name[NAME_BYTES];
    side_name(name);
    if (!is_alone(dirfd) || mkdirat(dirfd, name, 0755) < 0) {
        return;
    }
    int side CLEANUP_CLOSE = openat(dirfd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (side < 0 || run_cgroup_write(side, "cgroup.procs", "0") < 0) {
        unlinkat(dirfd, name, AT_REMOVEDIR);
        return;
    }
    hand_down_controllers(dirfd);
}

/* Where we are at home: above the place that we have stepped aside to. */
static void shorten_home(char *path) {
    char name[NAME_BYTES];
    char *last = strrchr(path, '/');
    side_name(name);
    if (last != NULL && strcmp(last + 1, name) == 0) {
        last[last == path ? 1 : 0] = '\0';
    }
}

static int make_in(struct run_cgroup *cgroup, size_t row, const char *name, struct error *err) {
    const struct cgroup_hierarchy *hierarchy = &cgroup->tree.rows[row];
    const char *home = cgroup->paths[row];
    shorten_home(cgroup->paths[row]);
    int fd CLEANUP_CLOSE =
        openat(hierarchy->fd, home[1] != '\0' ? home + 1 : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return error_set(err, -errno, "open %s%s: %m", hierarchy->path, home);
    }
    remove_stale(hierarchy->path, home, fd);
    if (hierarchy->unified && hand_down_controllers(fd) == -EBUSY) {
        step_aside(fd);
    }
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/%s", home[1] != '\0' ? home : "", name);
    if (mkdirat(fd, name, 0755) < 0) {
        return error_set(err, -errno, "make %s%s: %m", hierarchy->path, buf_str(&path));
    }
    free(cgroup->paths[row]);
    cgroup->paths[row] = buf_take(&path);
    return cgroup->paths[row] != NULL ? 0 : error_set(err, -ENOMEM, "out of memory");
}

/* Hierarchies in which none can be made are gone without. */
static int make_all(struct run_cgroup *cgroup, struct error *err) {
    int result = error_set(err, -ENODEV, "this process is in no cgroup that is mounted");
    bool any = false;
    static unsigned n_made; /* runs of one process follow each other quickly */
    char name[NAME_BYTES];
    snprintf(name, sizeof(name), OUR_PREFIX "%d.%u", (int)getpid(), n_made++);
    for (size_t i = 0; i < cgroup->tree.n_rows; i++) {
        int r = cgroup->paths[i] != NULL ? make_in(cgroup, i, name, any ? NULL : err) : -ENODEV;
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
    int r = run_cgroup_open(cgroup, cgroupfs, err);
    if (r == 0) {
        cgroup->ours = true;
        r = run_cgroup_locate(cgroup, procfs, "self", err);
    }
    if (r == 0) {
        r = make_all(cgroup, err);
    }
    if (r < 0) {
        cgroup->ours = false;
        run_cgroup_finish(cgroup);
    }
    return r;
}

static void step_back(const struct cgroup_hierarchy *row, char *path) {
    char name[NAME_BYTES];
    struct buf order CLEANUP_BUF = {0};
    side_name(name);
    shorten_home(path);
    int home CLEANUP_CLOSE =
        openat(row->fd, path[1] != '\0' ? path + 1 : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (home < 0 || faccessat(home, name, F_OK, 0) < 0) {
        return;
    }
    list_controllers(home, '-', &order);
    run_cgroup_write(home, "cgroup.subtree_control", buf_str(&order));
    run_cgroup_write(home, "cgroup.procs", "0");
    unlinkat(home, name, AT_REMOVEDIR);
}

void run_cgroup_go_home(const char *procfs, const char *cgroupfs) {
    struct run_cgroup cgroup;
    if (run_cgroup_open(&cgroup, cgroupfs, NULL) == 0 &&
        run_cgroup_locate(&cgroup, procfs, "self", NULL) == 0) {
        for (size_t i = 0; i < cgroup.tree.n_rows; i++) {
            if (cgroup.tree.rows[i].unified && cgroup.paths[i] != NULL) {
                step_back(&cgroup.tree.rows[i], cgroup.paths[i]);
            }
        }
    }
    run_cgroup_finish(&cgroup);
}
