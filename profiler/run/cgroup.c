#include "profiler/run/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "profiler/run/cgroup_private.h"

enum { MAX_KEPT_FILES = 32 };

/* ---- where a process is ---- */

/* Whether two lists of controllers, "cpu,cpuacct" and "cpuacct,cpu", have one in common. */
static bool share_controller(const char *a, size_t a_len, const char *b) {
    for (const char *end = a + a_len; a < end;) {
        size_t len = strcspn(a, ",");
        len = len < (size_t)(end - a) ? len : (size_t)(end - a);
        for (const char *other = b; len > 0 && *other != '\0';) {
            size_t other_len = strcspn(other, ",");
            if (other_len == len && memcmp(other, a, len) == 0) {
                return true;
            }
            other += other_len + (other[other_len] == ',' ? 1 : 0);
        }
        a += len + 1;
    }
    return false;
}

const char *run_cgroup_find_path(const char *text, const char *name, size_t *ret_len) {
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        const char *controllers = memchr(text, ':', len); /* "4:memory:/a/b", "0::/a/b" */
        const char *path = controllers != NULL ? memchr(controllers + 1, ':',
                                                        len - (size_t)(controllers + 1 - text))
                                               : NULL;
        if (path != NULL) {
            size_t n = (size_t)(path - controllers - 1);
            bool unified = n == 0 && strncmp(text, "0:", 2) == 0;
            if (name == NULL ? unified : share_controller(controllers + 1, n, name)) {
                *ret_len = len - (size_t)(path + 1 - text);
                return path + 1;
            }
        }
        text += len + (text[len] == '\n' ? 1 : 0);
    }
    return NULL;
}

static const char *last_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The path in one hierarchy, without what leads nowhere: in a container that has the host's view of
 * paths but only its own cgroup mounted, the root is where it is. The caller frees it. */
static char *path_in(const struct cgroup_hierarchy *row, const char *text) {
    size_t len;
    const char *found =
        run_cgroup_find_path(text, row->unified ? NULL : last_name(row->path), &len);
    char *path = found != NULL ? strndup(found, len) : NULL;
    if (path != NULL && path[1] != '\0' && faccessat(row->fd, path + 1, F_OK, 0) < 0) {
        path[1] = '\0';
    }
    return path;
}

int run_cgroup_locate(struct run_cgroup *cgroup, const char *procfs, const char *who,
                      struct error *err) {
    struct buf name CLEANUP_BUF = {0};
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&name, "%s/%s/cgroup", procfs, who);
    int r = file_read(buf_str(&name), &text, err);
    for (size_t i = 0; r == 0 && i < cgroup->tree.n_rows; i++) {
        cgroup->paths[i] = path_in(&cgroup->tree.rows[i], buf_str(&text));
    }
    return r;
}

int run_cgroup_open(struct run_cgroup *cgroup, const char *cgroupfs, struct error *err) {
    *cgroup = (struct run_cgroup){.hot = {.max_kept = MAX_KEPT_FILES}};
    cgroup_place_init(&cgroup->place);
    return cgroup_tree_open(&cgroup->tree, cgroupfs, err);
}

int run_cgroup_write(int dirfd, const char *file, const char *word) {
    int fd CLEANUP_CLOSE = openat(dirfd, file, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, word, strlen(word)) < 0 ? -errno : 0;
}

int run_cgroup_attach(struct run_cgroup *cgroup, const char *procfs, const char *cgroupfs,
                      pid_t pid, struct error *err) {
    char who[16];
    snprintf(who, sizeof(who), "%d", (int)pid);
    int r = run_cgroup_open(cgroup, cgroupfs, err);
    if (r == 0) {
        r = run_cgroup_locate(cgroup, procfs, who, err);
    }
    for (size_t i = 0; r == 0 && i < cgroup->tree.n_rows; i++) {
        /* The root is no container's: it would show the whole machine. */
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

/* ---- using it ---- */

int run_cgroup_enter(const struct run_cgroup *cgroup) {
    for (size_t i = 0; i < cgroup->tree.n_rows; i++) {
        if (cgroup->place.fds[i] < 0) {
            continue;
        }
        int fd = openat(cgroup->place.fds[i], "cgroup.procs", O_WRONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? write(fd, "0", 1) : -1;
        int failure = n < 0 ? -errno : 0;
        if (fd >= 0) {
            close(fd);
        }
        if (failure < 0) {
            return failure;
        }
    }
    return 0;
}

static void add_io(const struct cgroup_stats *stats, struct run_usage *usage) {
    for (size_t i = 0; i < stats->n_devices; i++) {
        const double *values = stats->devices[i].values;
        double read = values[CGROUP_IO_READ_BYTES], written = values[CGROUP_IO_WRITTEN_BYTES];
        usage->read_bytes = (i > 0 ? usage->read_bytes : 0) + (isnan(read) ? 0 : read);
        usage->written_bytes = (i > 0 ? usage->written_bytes : 0) + (isnan(written) ? 0 : written);
    }
}

/* v1 tells user and system in hundredths of a second but their sum exactly: the sum is shared out
 * as they stand to each other, and neither ever goes back. */
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

size_t run_cgroup_kill_listed(int dirfd) {
    struct buf text CLEANUP_BUF = {0};
    size_t n = 0;
    if (file_read_at(dirfd, "cgroup.procs", RUN_CGROUP_MAX_BYTES, &text, NULL) < 0) {
        return 0;
    }
    for (const char *at = buf_str(&text); *at != '\0';) {
        char *end;
        long pid = strtol(at, &end, 10);
        if (end == at) {
            break;
        }
        if (pid > 0) {
            kill((pid_t)pid, SIGKILL);
            n++;
        }
        at = end + strspn(end, "\n");
    }
    return n;
}

/* cgroup.kill gets all at once, those that are being forked too; where there is none, listing is
 * repeated by the caller until nobody is left. */
size_t run_cgroup_kill(struct run_cgroup *cgroup) {
    size_t n = 0;
    for (size_t i = 0; i < cgroup->tree.n_rows; i++) {
        if (cgroup->place.fds[i] < 0) {
            continue;
        }
        size_t here = run_cgroup_kill_listed(cgroup->place.fds[i]);
        n = here > n ? here : n;
        if (here > 0 && cgroup->tree.rows[i].unified) {
            run_cgroup_write(cgroup->place.fds[i], "cgroup.kill", "1");
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
