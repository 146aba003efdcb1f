#include <errno.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "collectors/host/parse.h"
#include "collectors/host/part.h"
#include "collectors/host/statfs.h"
#include "collectors/source/filter.h"
#include "collectors/source/rows.h"
#include "collectors/source/source_file.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/scan.h"
#include "exporter/metrics/labels.h"

enum {
    FILESYSTEM_TIMEOUT_MS = 500,
    FILESYSTEM_MAX_TRUST = 15, /* collections that may rely on one reading of the mounts */
};

#define FILESYSTEM(name, help, unit)                                                               \
    { "node_filesystem_" name, help, METRIC_GAUGE, unit, "device, fstype, mountpoint" }

enum {
    FILESYSTEM_AVAIL,
    FILESYSTEM_DEVICE_ERROR,
    FILESYSTEM_FILES,
    FILESYSTEM_FILES_FREE,
    FILESYSTEM_FREE,
    FILESYSTEM_READONLY,
    FILESYSTEM_SIZE,
    FILESYSTEM_N_METRICS,
};

const struct metric_desc host_filesystem_metrics[] = {
    FILESYSTEM("avail_bytes", "Space that users other than root can still use.", "bytes"),
    FILESYSTEM("device_error",
               "Whether the file system did not answer in time or with an error (1) or did (0).",
               NULL),
    FILESYSTEM("files", "Number of inodes.", NULL),
    FILESYSTEM("files_free", "Number of inodes that are free.", NULL),
    FILESYSTEM("free_bytes", "Free space, including what is kept for root.", "bytes"),
    FILESYSTEM("readonly", "Whether the file system is mounted read-only (1) or not (0).", NULL),
    FILESYSTEM("size_bytes", "Size of the file system.", "bytes"),
    {0},
};

/* A mount that exists, with its rendered labels. Excluded ones are kept too, so that the
 * expressions are matched only once. */
struct mount {
    struct row row; /* its device, mount point and type as in the file */
    bool read_only;
    struct labels *labels;       /* NULL: excluded */
    struct host_statfs_job *job; /* NULL: excluded */
    int answer;                  /* of statfs: 0 or a negative errno */
    double values[FILESYSTEM_N_METRICS];
};

struct filesystem {
    struct source_file file;
    char *rootfs;
    struct filter exclude_mount_points;
    struct filter exclude_types;
    struct buf text; /* of the mounts */
    int text_result;
    unsigned trusted; /* collections since it was read */
    struct rows mounts;
    struct host_statfs *statfs;
    struct host_statfs_job **jobs; /* of the mounts that are not excluded */
    size_t n_jobs;
    size_t cap_jobs;
};

/* ---- lines of the mount table ---- */

static bool has_option(struct scan_word options, const char *option) {
    size_t n = strlen(option);
    const char *at = options.text;
    const char *end = options.text + options.len;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t len = (size_t)((comma != NULL ? comma : end) - at);
        if (len == n && memcmp(at, option, n) == 0) {
            return true;
        }
        at += len + 1;
    }
    return false;
}

int host_mount_parse(const char *line, struct host_mount_line *ret_line) {
    struct scan_word options;
    if (!scan_word(&line, &ret_line->device) || !scan_word(&line, &ret_line->mount_point) ||
        !scan_word(&line, &ret_line->type) || !scan_word(&line, &options)) {
        return -EINVAL;
    }
    const char *begin = ret_line->device.text;
    const char *end = ret_line->type.text + ret_line->type.len;
    ret_line->key = (struct scan_word){.text = begin, .len = (size_t)(end - begin)};
    ret_line->read_only = has_option(options, "ro");
    return 0;
}

static bool is_octal(char c) {
    return c >= '0' && c <= '7';
}

char *host_mount_unescape(struct scan_word word) {
    char *path = mem_alloc(word.len + 1);
    const char *in = word.text;
    const char *end = in + word.len;
    char *out = path;
    while (in < end) {
        if (*in == '\\' && end - in >= 4 && in[1] <= '3' && is_octal(in[1]) && is_octal(in[2]) &&
            is_octal(in[3])) {
            *out++ = (char)((in[1] - '0') << 6 | (in[2] - '0') << 3 | (in[3] - '0'));
            in += 4;
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
    return path;
}

const char *host_mount_strip(const char *path, const char *rootfs) {
    size_t n = strlen(rootfs);
    while (n > 0 && rootfs[n - 1] == '/') {
        n--;
    }
    if (n == 0 || strncmp(path, rootfs, n) != 0) {
        return path;
    }
    if (path[n] == '\0') {
        return "/";
    }
    return path[n] == '/' ? path + n : path;
}

/* ---- mounts ---- */

static void finish_mount(void *row) {
    struct mount *mount = row;
    labels_destroy(mount->labels);
    host_statfs_job_destroy(mount->job);
}

static void mount_init(struct filesystem *filesystem, struct mount *mount,
                       const struct host_mount_line *line) {
    char *device CLEANUP_FREE = mem_strndup(line->device.text, line->device.len);
    char *type CLEANUP_FREE = mem_strndup(line->type.text, line->type.len);
    char *seen CLEANUP_FREE = host_mount_unescape(line->mount_point);
    const char *mount_point = host_mount_strip(seen, filesystem->rootfs);
    if (filter_excludes(&filesystem->exclude_mount_points, mount_point) ||
        filter_excludes(&filesystem->exclude_types, type)) {
        return;
    }
    char *path CLEANUP_FREE = file_path_join(filesystem->rootfs, mount_point);
    mount->labels = labels_render("device", device, "fstype", type, "mountpoint", mount_point);
    mount->job = host_statfs_job_create(filesystem->statfs, path);
}

static int mount_line(void *context, size_t number, const char *text) {
    (void)number;
    struct filesystem *filesystem = context;
    struct host_mount_line line;
    int r = host_mount_parse(text, &line);
    if (r < 0) {
        return r;
    }
    struct mount *mount = rows_see(&filesystem->mounts, line.key);
    if (mount->row.is_new) {
        mount_init(filesystem, mount, &line);
    }
    /* If the same device is mounted twice in one place, the later one is on top. */
    mount->read_only = line.read_only;
    return 0;
}

static struct mount *mount_at(const struct filesystem *filesystem, size_t i) {
    return (struct mount *)filesystem->mounts.all[i];
}

static void list_jobs(struct filesystem *filesystem) {
    ARRAY_GROW(&filesystem->jobs, &filesystem->cap_jobs, filesystem->mounts.n);
    filesystem->n_jobs = 0;
    for (size_t i = 0; i < filesystem->mounts.n; i++) {
        if (mount_at(filesystem, i)->job != NULL) {
            filesystem->jobs[filesystem->n_jobs++] = mount_at(filesystem, i)->job;
        }
    }
}

/* Mount tables are long and rarely change: with twenty containers, they cost the kernel more than
 * all other files together. It marks its file when something is mounted or unmounted; an ordinary
 * file, as tests have, is read every time. */
static bool is_unchanged(struct filesystem *filesystem) {
    struct pollfd mark = {.fd = filesystem->file.fd, .events = POLLPRI};
    struct statfs stat;
    return filesystem->file.fd >= 0 && filesystem->text.len > 0 && filesystem->text_result == 0 &&
           filesystem->trusted++ < FILESYSTEM_MAX_TRUST &&
           fstatfs(filesystem->file.fd, &stat) == 0 && stat.f_type == PROC_SUPER_MAGIC &&
           poll(&mark, 1, 0) == 0;
}

/* A table that is equal to the last one is not parsed again. */
static int update_mounts(struct filesystem *filesystem, const struct buf *text, struct error *err) {
    filesystem->trusted = 0;
    if (filesystem->text_result == 0 && text->len > 0 && text->len == filesystem->text.len &&
        memcmp(text->data, filesystem->text.data, text->len) == 0) {
        return 0;
    }
    buf_reset(&filesystem->text);
    buf_add(&filesystem->text, buf_str(text), text->len);
    filesystem->text_result =
        scan_lines(buf_str(text), filesystem->file.path, mount_line, filesystem, err);
    rows_sweep(&filesystem->mounts);
    list_jobs(filesystem);
    return filesystem->text_result;
}

static void take_answer(struct mount *mount) {
    struct statfs stat = {0};
    mount->answer = host_statfs_answer(mount->job, &stat);
    double block = (double)stat.f_bsize;
    mount->values[FILESYSTEM_AVAIL] = (double)stat.f_bavail * block;
    mount->values[FILESYSTEM_DEVICE_ERROR] = mount->answer < 0;
    mount->values[FILESYSTEM_FILES] = (double)stat.f_files;
    mount->values[FILESYSTEM_FILES_FREE] = (double)stat.f_ffree;
    mount->values[FILESYSTEM_FREE] = (double)stat.f_bfree * block;
    /* After a fault a file system may become read-only, which does not mark the mount table. */
    mount->values[FILESYSTEM_READONLY] = mount->read_only || (stat.f_flags & ST_RDONLY) != 0;
    mount->values[FILESYSTEM_SIZE] = (double)stat.f_blocks * block;
}

static void emit(const struct filesystem *filesystem, struct snapshot *out) {
    for (int metric = 0; metric < FILESYSTEM_N_METRICS; metric++) {
        bool always = metric == FILESYSTEM_DEVICE_ERROR || metric == FILESYSTEM_READONLY;
        for (size_t i = 0; i < filesystem->mounts.n; i++) {
            const struct mount *mount = mount_at(filesystem, i);
            if (mount->labels != NULL && (always || mount->answer == 0)) {
                snapshot_add(out, &host_filesystem_metrics[metric], mount->labels,
                             mount->values[metric]);
            }
        }
    }
}

static int filesystem_collect(void *state, struct buf *scratch, struct snapshot *out,
                              struct error *err) {
    struct filesystem *filesystem = state;
    int r = 0;
    if (!is_unchanged(filesystem)) {
        r = source_file_read(&filesystem->file, scratch, err);
        if (r < 0) {
            return source_file_absent(r) ? 0 : r;
        }
        r = update_mounts(filesystem, scratch, err);
    }
    host_statfs_ask(filesystem->statfs, filesystem->jobs, filesystem->n_jobs,
                    FILESYSTEM_TIMEOUT_MS);
    for (size_t i = 0; i < filesystem->mounts.n; i++) {
        if (mount_at(filesystem, i)->job != NULL) {
            take_answer(mount_at(filesystem, i));
        }
    }
    emit(filesystem, out);
    return r;
}

static void filesystem_close(void *state) {
    struct filesystem *filesystem = state;
    rows_finish(&filesystem->mounts);
    free(filesystem->jobs);
    free(filesystem->rootfs);
    buf_finish(&filesystem->text);
    host_statfs_destroy(filesystem->statfs);
    filter_finish(&filesystem->exclude_mount_points);
    filter_finish(&filesystem->exclude_types);
    source_file_finish(&filesystem->file);
}

static void filesystem_open(void *state, const struct collector_env *env) {
    struct filesystem *filesystem = state;
    filesystem->rootfs = mem_strdup(env->rootfs);
    filesystem->mounts = (struct rows){sizeof(struct mount), finish_mount};
    filesystem->statfs = host_statfs_create(statfs);
    /* The host's mounts are those of its first process; ours may be others. */
    source_file_init(&filesystem->file, env->procfs, "1/mounts", "mounts");
    filter_init(&filesystem->exclude_mount_points, env->settings,
                "collector.host.filesystem.mount-points-exclude");
    filter_init(&filesystem->exclude_types, env->settings,
                "collector.host.filesystem.fs-types-exclude");
}

const struct host_part host_filesystem_part = {
    .state_size = sizeof(struct filesystem),
    .open = filesystem_open,
    .collect = filesystem_collect,
    .close = filesystem_close,
};
