#include "exporter/channel/pywaggle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/channel/pywaggle_log.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/push/claim.h"

/* One turn reads MAX_BYTES of the logs of a directory and searches MAX_ENTRIES of it for new logs:
 * a few milliseconds each. If there is more, the next turn comes sooner. */
enum {
    MAX_BYTES = 64 << 10,
    MAX_ENTRIES = 500,
    MAX_LOGS = 256,
    INTERVAL_MS = 500,
    SOON_MS = 10,
};

struct directory {
    char *path;
    int64_t begin_ns; /* since when it is followed, by the monotonic clock */
    DIR *search;      /* where it continues; NULL: at the beginning */
    bool is_searched; /* once, completely */
    bool failing;
    bool crowded; /* which was logged */
    struct pywaggle_log *logs;
    size_t n_logs, cap_logs;
    size_t next; /* the log that is read first in the next turn */
};

struct pywaggle {
    struct loop *loop;
    struct push_store *store;
    struct push_log *log;
    struct loop_timer timer;
    struct directory *directories;
    size_t n_directories;
    struct buf text;
    size_t n_bytes; /* read in this turn of the directory's logs */
    bool more;      /* is left for the next turn */
};

/* ---- lines ---- */

static int take_line(struct pywaggle *pywaggle, struct push_owner *owner, char *line, size_t len,
                     struct error *err) {
    struct pywaggle_line parsed = {.n_updates = 0};
    int r = pywaggle_line_read(line, len, &parsed, err);
    if (r < 0) {
        push_store_count_refused(pywaggle->store, -EBADMSG);
        return -EBADMSG;
    }
    struct push_batch batch = {.updates = parsed.updates, .n_updates = parsed.n_updates};
    r = push_store_apply(pywaggle->store, owner, &batch, NULL, err);
    if (r < 0 && batch.n_updates > 1) { /* the publish counts even if its value is rejected */
        batch.n_updates = 1;
        push_store_apply(pywaggle->store, owner, &batch, NULL, NULL);
    }
    return r;
}

static void log_refused(struct pywaggle *pywaggle, const struct directory *directory,
                        const struct pywaggle_log *log, int code, const struct error *error) {
    struct buf source CLEANUP_BUF = {0};
    buf_printf(&source, "plugin %s by %s/%s%sdata.ndjson", log->plugin, directory->path,
               log->below ? log->plugin : "", log->below ? "/" : "");
    push_log_refused(pywaggle->log, buf_str(&source), code, NULL, error->text);
}

/* The size of the whole lines. A line that fills the buffer is not pywaggle's and is skipped. */
static size_t whole_lines(const struct buf *text) {
    const char *end = memrchr(text->data, '\n', text->len);
    if (end != NULL) {
        return (size_t)(end - text->data) + 1;
    }
    return text->len == MAX_BYTES ? text->len : 0;
}

static void take_lines(struct pywaggle *pywaggle, const struct directory *directory,
                       const struct pywaggle_log *log, struct push_owner *owner) {
    struct buf *text = &pywaggle->text;
    size_t done = 0;
    char *end;
    while ((end = memchr(text->data + done, '\n', text->len - done)) != NULL) {
        char *line = text->data + done;
        size_t len = (size_t)(end - line);
        done += len + 1;
        if (len > 0) {
            struct error error;
            int r = take_line(pywaggle, owner, line, len, &error);
            if (r < 0) {
                log_refused(pywaggle, directory, log, r, &error);
            }
        }
    }
}

/* ---- logs ---- */

/* The writer of a log is unknown, so the plugin's name is not verified. */
static int find_owner(struct pywaggle *pywaggle, const struct pywaggle_log *log,
                      struct push_owner **ret_owner, struct error *err) {
    struct push_identity identity = {.plugin = log->plugin};
    struct push_owner *owner;
    int r = push_store_owner(pywaggle->store, &identity, &owner, err);
    if (r < 0) {
        return r;
    }
    const struct push_claim claim = {.kind = PUSH_CLAIM_PYWAGGLE};
    r = push_claim(pywaggle->store, owner, &claim, false, err);
    if (r < 0) {
        push_store_count_refused(pywaggle->store, r);
        push_owner_unref(pywaggle->store, owner);
        return r;
    }
    *ret_owner = owner;
    return 0;
}

static void read_on(struct pywaggle *pywaggle, const struct directory *directory,
                    struct pywaggle_log *log, int fd) {
    struct push_owner *owner;
    struct error error;
    buf_reset(&pywaggle->text);
    char *room = buf_reserve(&pywaggle->text, MAX_BYTES);
    ssize_t n = pread(fd, room, MAX_BYTES, log->offset);
    if (n <= 0) {
        return;
    }
    pywaggle->text.len += (size_t)n;
    pywaggle->n_bytes += (size_t)n;
    /* Rejected lines are skipped: retries would be a load, and the values old. */
    log->offset += (off_t)whole_lines(&pywaggle->text);
    int r = find_owner(pywaggle, log, &owner, &error);
    if (r < 0) {
        log_refused(pywaggle, directory, log, r, &error);
        return;
    }
    take_lines(pywaggle, directory, log, owner);
    push_owner_unref(pywaggle->store, owner);
}

static int64_t read_birth(int fd) {
    struct statx st;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) < 0 || (st.stx_mask & STATX_BTIME) == 0) {
        return 0;
    }
    return st.stx_btime.tv_sec * CLOCK_NS_PER_SEC + st.stx_btime.tv_nsec;
}

/* Opens data.ndjson, in the directory `below` unless that is NULL; -1: it does not exist. No links
 * are followed: plugins write there, and a link could lead to any file that we may read. */
static int open_log(int dirfd, const char *below, struct pywaggle_sight *ret_sight) {
    int dir CLEANUP_CLOSE = -1;
    if (below != NULL) {
        dir = openat(dirfd, below, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW);
        if (dir < 0) {
            return -1;
        }
        dirfd = dir;
    }
    int fd CLEANUP_CLOSE =
        openat(dirfd, "data.ndjson", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        return -1;
    }
    *ret_sight = (struct pywaggle_sight){
        .device = st.st_dev, .inode = st.st_ino, .birth_ns = read_birth(fd), .size = st.st_size};
    return TAKE_FD(fd);
}

/* Counted back from now: a board without a battery starts in 1970 and gets the time later. The
 * stamps of files are up to 10 ms behind, so that an older file never seems younger. */
static struct pywaggle_span span_until_now(int64_t begin_ns) {
    int64_t now_ns = (int64_t)(clock_wall_seconds() * 1e9);
    return (struct pywaggle_span){.begin_ns = now_ns - (clock_monotonic_ns() - begin_ns),
                                  .end_ns = now_ns};
}

/* Reads on in an open log, unless its directory has had its turn. */
static void visit_log(struct pywaggle *pywaggle, const struct directory *directory,
                      struct pywaggle_log *log, int fd, const struct pywaggle_sight *sight) {
    struct pywaggle_span followed = span_until_now(directory->begin_ns);
    pywaggle_log_meet(log, sight, &followed, !directory->is_searched);
    bool has_time = pywaggle->n_bytes < MAX_BYTES;
    pywaggle->more |= sight->size - log->offset > (has_time ? MAX_BYTES : 0);
    if (sight->size > log->offset && has_time) {
        read_on(pywaggle, directory, log, fd);
    }
}

static void visit_known(struct pywaggle *pywaggle, struct directory *directory, int dirfd) {
    size_t first = directory->next;
    for (size_t i = 0; i < directory->n_logs; i++) {
        size_t at = (first + i) % directory->n_logs;
        struct pywaggle_log *log = &directory->logs[at];
        struct pywaggle_sight sight;
        int fd CLEANUP_CLOSE = open_log(dirfd, log->below ? log->plugin : NULL, &sight);
        log->is_away = fd < 0;
        if (fd >= 0) {
            directory->next = pywaggle->n_bytes < MAX_BYTES ? at + 1 : directory->next;
            visit_log(pywaggle, directory, log, fd, &sight);
        }
    }
}

/* A place for one more log, that of one that is away if there are too many; NULL: there is none. */
static struct pywaggle_log *add_log(struct directory *directory) {
    if (directory->n_logs < MAX_LOGS) {
        ARRAY_GROW(&directory->logs, &directory->cap_logs, directory->n_logs + 1);
        return &directory->logs[directory->n_logs++];
    }
    for (size_t i = 0; i < MAX_LOGS; i++) {
        if (directory->logs[i].is_away) {
            free(directory->logs[i].plugin);
            return &directory->logs[i];
        }
    }
    return NULL;
}

/* Takes up the plugin's log, if there is one and it is not known. */
static void discover(struct pywaggle *pywaggle, struct directory *directory, int dirfd,
                     const char *plugin, bool below) {
    for (size_t i = 0; i < directory->n_logs; i++) {
        const struct pywaggle_log *log = &directory->logs[i];
        if (log->below == below && strcmp(log->plugin, plugin) == 0) {
            return;
        }
    }
    struct pywaggle_sight sight;
    int fd CLEANUP_CLOSE = open_log(dirfd, below ? plugin : NULL, &sight);
    struct pywaggle_log *log = fd >= 0 ? add_log(directory) : NULL;
    if (log != NULL) {
        *log = (struct pywaggle_log){.plugin = mem_strdup(plugin), .below = below};
        visit_log(pywaggle, directory, log, fd, &sight);
    }
}

/* ---- directories ---- */

static void end_search(struct directory *directory) {
    if (directory->search != NULL) {
        closedir(TAKE(directory->search));
    }
}

/* Goes on with the search for logs in the directories below. */
static void search(struct pywaggle *pywaggle, struct directory *directory, int dirfd) {
    if (directory->search == NULL) {
        int fd CLEANUP_CLOSE = openat(dirfd, ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
        directory->search = fd >= 0 ? fdopendir(fd) : NULL;
        if (directory->search == NULL) {
            return;
        }
        (void)TAKE_FD(fd);
    }
    for (int i = 0; i < MAX_ENTRIES; i++) {
        struct dirent *entry = readdir(directory->search);
        if (entry == NULL) {
            end_search(directory);
            directory->is_searched = true;
            return;
        }
        if (entry->d_name[0] != '.' && entry->d_type != DT_REG) {
            discover(pywaggle, directory, dirfd, entry->d_name, true);
        }
    }
    if (!directory->crowded) {
        log_warn("pywaggle: %s: more than %d entries; a plugin that is new there is noticed late",
                 directory->path, MAX_ENTRIES);
    }
    directory->crowded = true;
    pywaggle->more |= !directory->is_searched;
}

static void visit_directory(struct pywaggle *pywaggle, struct directory *directory) {
    const char *path = directory->path;
    int fd CLEANUP_CLOSE = open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (fd < 0 && !directory->failing) {
        log_warn("pywaggle: open %s: %m (see --push.pywaggle-log)", path);
    } else if (fd >= 0 && directory->failing) {
        log_info("pywaggle: open %s: fine again", path);
    }
    directory->failing = fd < 0;
    if (fd < 0) {
        end_search(directory);
        return;
    }
    const char *slash = strrchr(path, '/');
    pywaggle->n_bytes = 0;
    visit_known(pywaggle, directory, fd);
    discover(pywaggle, directory, fd, slash != NULL && slash[1] != '\0' ? slash + 1 : path, false);
    search(pywaggle, directory, fd);
}

static void forget_directories(struct directory *directories, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct directory *directory = &directories[i];
        end_search(directory);
        for (size_t k = 0; k < directory->n_logs; k++) {
            free(directory->logs[k].plugin);
        }
        free(directory->logs);
        free(directory->path);
    }
    free(directories);
}

/* ---- life ---- */

static void fire(struct loop_timer *timer) {
    struct pywaggle *pywaggle = CONTAINER_OF(timer, struct pywaggle, timer);
    pywaggle->more = false;
    for (size_t i = 0; i < pywaggle->n_directories; i++) {
        visit_directory(pywaggle, &pywaggle->directories[i]);
    }
    timer->due_ns =
        clock_monotonic_ns() + (pywaggle->more ? SOON_MS : INTERVAL_MS) * CLOCK_NS_PER_MS;
}

struct pywaggle *pywaggle_create(struct loop *loop, struct push_store *store,
                                 struct push_log *log) {
    struct pywaggle *pywaggle = mem_zalloc(1, sizeof(*pywaggle));
    pywaggle->loop = loop;
    pywaggle->store = store;
    pywaggle->log = log;
    pywaggle->timer = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = fire};
    loop_timer_add(loop, &pywaggle->timer);
    return pywaggle;
}

void pywaggle_destroy(struct pywaggle *pywaggle) {
    if (pywaggle == NULL) {
        return;
    }
    loop_timer_remove(pywaggle->loop, &pywaggle->timer);
    forget_directories(pywaggle->directories, pywaggle->n_directories);
    buf_finish(&pywaggle->text);
    free(pywaggle);
}

/* A directory without slashes at its end; what is known of it is taken over. */
static struct directory take_up(const char *path, struct directory *before, size_t n_before) {
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    for (size_t i = 0; i < n_before; i++) {
        if (before[i].path != NULL && strlen(before[i].path) == len &&
            memcmp(before[i].path, path, len) == 0) {
            struct directory known = before[i];
            before[i] = (struct directory){0};
            return known;
        }
    }
    return (struct directory){.path = mem_strndup(path, len), .begin_ns = clock_monotonic_ns()};
}

void pywaggle_configure(struct pywaggle *pywaggle, const struct settings *settings) {
    const char *const *paths = settings_list(settings, "push.pywaggle-log");
    struct directory *before = TAKE(pywaggle->directories);
    size_t n_before = pywaggle->n_directories, capacity = 0;
    pywaggle->n_directories = 0;
    for (; *paths != NULL; paths++) {
        ARRAY_GROW(&pywaggle->directories, &capacity, pywaggle->n_directories + 1);
        pywaggle->directories[pywaggle->n_directories++] = take_up(*paths, before, n_before);
    }
    forget_directories(before, n_before);
    pywaggle->timer.due_ns = LOOP_NEVER;
    if (pywaggle->n_directories > 0) {
        fire(&pywaggle->timer);
    }
}
