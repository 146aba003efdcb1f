#include "collectors/container/procs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/scan.h"

enum { MAX_BYTES = 1 << 20, MAX_DEPTH = 4, START_FIELD = 22, FIRST_FIELD_BEHIND_NAME = 3 };

/* One number per line; a process that lives in another pid namespace is a 0. */
static void count(const char *text, struct container_procs *procs) {
    while (*text != '\0') {
        uint64_t pid = 0;
        if (scan_u64(&text, &pid)) {
            procs->n++;
            procs->first = procs->first == 0 ? (pid_t)pid : procs->first;
        }
        text = strchrnul(text, '\n');
        text += *text == '\n' ? 1 : 0;
    }
}

static int read_level(int dirfd, size_t depth, struct buf *scratch, struct container_procs *procs);

static void read_children(int parent, size_t depth, struct buf *scratch,
                          struct container_procs *procs) {
    int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            int child CLEANUP_CLOSE =
                openat(fd, entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (child >= 0) {
                read_level(child, depth + 1, scratch, procs);
            }
        }
    }
    closedir(directory);
}

static int read_level(int dirfd, size_t depth, struct buf *scratch, struct container_procs *procs) {
    struct stat stat;
    int r = file_read_at(dirfd, "cgroup.procs", MAX_BYTES, scratch, NULL);
    if (r == 0) {
        count(buf_str(scratch), procs);
    }
    if (depth < MAX_DEPTH && fstat(dirfd, &stat) == 0 && stat.st_nlink != 2) {
        read_children(dirfd, depth, scratch, procs);
    }
    return r;
}

int container_procs_read(int dirfd, struct buf *scratch, struct container_procs *ret_procs) {
    *ret_procs = (struct container_procs){0};
    return read_level(dirfd, 0, scratch, ret_procs);
}

double container_procs_parse_start(const char *text) {
    const char *cursor = strrchr(text, ')'); /* the name before it may hold anything */
    if (cursor == NULL) {
        return -1;
    }
    cursor++;
    struct scan_word word;
    uint64_t ticks;
    for (int field = FIRST_FIELD_BEHIND_NAME; field < START_FIELD; field++) {
        if (!scan_word(&cursor, &word)) {
            return -1;
        }
    }
    return scan_u64(&cursor, &ticks) ? (double)ticks / (double)sysconf(_SC_CLK_TCK) : -1;
}

/* "btime 1763280000" of /proc/stat. */
double container_procs_boot_time(const char *procfs) {
    struct buf text CLEANUP_BUF = {0};
    char *path CLEANUP_FREE = file_path_join(procfs, "stat");
    uint64_t seconds = 0;
    if (path != NULL && file_read(path, &text, NULL) == 0) {
        const char *line = strstr(buf_str(&text), "\nbtime ");
        const char *cursor = line != NULL ? line + strlen("\nbtime ") : "";
        seconds = scan_u64(&cursor, &seconds) ? seconds : 0;
    }
    return (double)seconds;
}
