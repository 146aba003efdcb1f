#include "exporter/channel/pywaggle_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

/* How long a log's place is kept for it at least. */
#define KEEP_NS (300 * CLOCK_NS_PER_SEC)

/* ---- times ---- */

/* Counted back from now: a board without a battery starts in 1970 and gets the time later. Files
 * are stamped by the tick, which is up to 10 ms behind: what was there before us never seems
 * younger. */
struct pywaggle_span pywaggle_span_until_now(int64_t begin_ns) {
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t now_ns = wall.tv_sec * CLOCK_NS_PER_SEC + wall.tv_nsec;
    return (struct pywaggle_span){.begin_ns = now_ns - (clock_monotonic_ns() - begin_ns),
                                  .end_ns = now_ns};
}

static int64_t read_birth(int fd) {
    struct statx st;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) < 0 || (st.stx_mask & STATX_BTIME) == 0) {
        return 0;
    }
    return st.stx_btime.tv_sec * CLOCK_NS_PER_SEC + st.stx_btime.tv_nsec;
}

/* ---- the list ---- */

bool pywaggle_files_init(struct pywaggle_files *files) {
    *files = (struct pywaggle_files){
        .items = calloc(PYWAGGLE_MAX_FILES, sizeof(*files->items)),
    };
    return files->items != NULL;
}

static void file_finish(struct pywaggle_file *file) {
    free(file->directory);
    free(file->plugin);
}

void pywaggle_files_finish(struct pywaggle_files *files) {
    for (size_t i = 0; i < files->n; i++) {
        file_finish(&files->items[i]);
    }
    free(files->items);
    *files = (struct pywaggle_files){0};
}

struct pywaggle_file *pywaggle_files_find(const struct pywaggle_files *files, const char *directory,
                                          const char *plugin, bool below) {
    for (size_t i = 0; i < files->n; i++) {
        struct pywaggle_file *file = &files->items[i];
        if (file->below == below && strcmp(file->plugin, plugin) == 0 &&
            strcmp(file->directory, directory) == 0) {
            return file;
        }
    }
    return NULL;
}

void pywaggle_files_remove(struct pywaggle_files *files, struct pywaggle_file *file) {
    file_finish(file);
    *file = files->items[--files->n];
}

static void make_room(struct pywaggle_files *files) {
    int64_t now = clock_monotonic_ns();
    for (size_t i = 0; i < files->n; i++) {
        struct pywaggle_file *file = &files->items[i];
        if (file->gone_ns != 0 && now - file->gone_ns > KEEP_NS) {
            pywaggle_files_remove(files, file);
            return;
        }
    }
}

struct pywaggle_file *pywaggle_files_add(struct pywaggle_files *files, const char *directory,
                                         const char *plugin, bool below) {
    if (files->n == PYWAGGLE_MAX_FILES) {
        make_room(files);
    }
    if (files->n == PYWAGGLE_MAX_FILES) {
        return NULL;
    }
    struct pywaggle_file *file = &files->items[files->n];
    *file = (struct pywaggle_file){
        .directory = strdup(directory), .plugin = strdup(plugin), .below = below};
    if (file->directory == NULL || file->plugin == NULL) {
        file_finish(file);
        return NULL;
    }
    files->n++;
    return file;
}

/* ---- one log ---- */

/* Plugins write there, so no links are followed: they could lead to any file that we may read. */
int pywaggle_file_open(int dirfd, const char *below, struct pywaggle_sight *ret_sight) {
    int dir CLEANUP_CLOSE = -1;
    if (below != NULL) {
        dir = openat(dirfd, below, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW);
        if (dir < 0) {
            return -errno;
        }
        dirfd = dir;
    }
    int fd CLEANUP_CLOSE =
        openat(dirfd, "data.ndjson", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        return -errno;
    }
    if (!S_ISREG(st.st_mode)) {
        return -ENOENT;
    }
    *ret_sight = (struct pywaggle_sight){
        .device = st.st_dev, .inode = st.st_ino, .birth_ns = read_birth(fd), .size = st.st_size};
    return TAKE_FD(fd);
}

/* ELOOP: a link stands there. */
bool pywaggle_is_absence(int code) {
    return code == -ENOENT || code == -ENOTDIR || code == -ELOOP;
}

/* Inodes are used again, and a device may have another number when it is mounted again. */
static bool is_same(const struct pywaggle_file *file, const struct pywaggle_sight *sight) {
    if (file->inode != sight->inode) {
        return false;
    }
    bool born = file->birth_ns != 0 && sight->birth_ns != 0;
    return born ? file->birth_ns == sight->birth_ns : file->device == sight->device;
}

/* A birth that is still to come is from a machine with another clock, which says nothing. */
static bool is_within(int64_t birth_ns, const struct pywaggle_span *span) {
    return birth_ns > span->begin_ns && birth_ns <= span->end_ns;
}

void pywaggle_file_meet(struct pywaggle_file *file, const struct pywaggle_sight *sight,
                        const struct pywaggle_span *followed) {
    if (!is_same(file, sight)) { /* new, or begun anew */
        bool old = file->early && !is_within(sight->birth_ns, followed);
        file->offset = old ? sight->size : 0;
    } else if (sight->size < file->offset) { /* cut */
        file->offset = 0;
    }
    file->device = sight->device;
    file->inode = sight->inode;
    file->birth_ns = sight->birth_ns;
    file->gone_ns = 0;
    file->early = false;
}

void pywaggle_file_miss(struct pywaggle_file *file, int code) {
    bool absent = pywaggle_is_absence(code);
    if (absent) {
        file->early = false;
    }
    if (file->gone_ns == 0 && (absent || file->inode == 0)) {
        file->gone_ns = clock_monotonic_ns();
    }
}
