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

/* MAX_BYTES: how much is read of one log at a time, which takes a few milliseconds, and of all of
 * them per turn; where more is there, the next turn comes sooner. MAX_ENTRIES: how much of each
 * directory is searched per turn for logs that are not known yet, which takes as long. */
enum {
    MAX_BYTES = 64 << 10,
    MAX_ENTRIES = 500,
    INTERVAL_MS = 500,
    SOON_MS = 10,
};

struct directory {
    char *path;
    int64_t begin_ns; /* since when it is followed, by the monotonic clock */
    DIR *search;      /* where it continues; NULL: at the beginning */
    dev_t device;     /* of the directory that was there last, perhaps a mount */
    ino_t inode;
    bool settled; /* that one was searched once: what comes up now was not there before us */
    bool failing;
    bool crowded; /* which was logged */
};

struct pywaggle {
    struct loop *loop;
    struct push_store *store;
    struct push_log *log;
    struct loop_timer timer;
    struct directory *directories; /* the last without a path; or NULL */
    struct pywaggle_files files;
    struct buf text;
    bool behind; /* the last turn left logs waiting: they come first */
    bool more;   /* this one does */
    size_t n_bytes;
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

static void log_refused(struct pywaggle *pywaggle, const struct pywaggle_file *file, int code,
                        const struct error *error) {
    struct buf source CLEANUP_BUF = {0};
    buf_printf(&source, "plugin %s by %s/", file->plugin, file->directory);
    if (file->below) {
        buf_printf(&source, "%s/", file->plugin);
    }
    buf_add_str(&source, "data.ndjson");
    push_log_refused(pywaggle->log, buf_str(&source), code, NULL, error->text);
}

/* How many bytes the whole lines of the text are. A line that fills all the room is none of
 * pywaggle's: it is passed over piece by piece. */
static size_t whole_lines(const struct buf *text) {
    const char *end = memrchr(text->data, '\n', text->len);
    if (end != NULL) {
        return (size_t)(end - text->data) + 1;
    }
    return text->len == MAX_BYTES ? text->len : 0;
}

static void take_lines(struct pywaggle *pywaggle, struct pywaggle_file *file,
                       struct push_owner *owner) {
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
                log_refused(pywaggle, file, r, &error);
            }
        }
    }
}

/* ---- files ---- */

/* The writer of a log is unknown, so the plugin's name is not verified. */
static int find_owner(struct pywaggle *pywaggle, const struct pywaggle_file *file,
                      struct push_owner **ret_owner, struct error *err) {
    struct push_identity identity = {.plugin = file->plugin};
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

static void read_on(struct pywaggle *pywaggle, struct pywaggle_file *file, int fd) {
    struct push_owner *owner;
    struct error error;
    buf_reset(&pywaggle->text);
    char *room = buf_reserve(&pywaggle->text, MAX_BYTES);
    ssize_t n = pread(fd, room, MAX_BYTES, file->offset);
    if (n <= 0) {
        return;
    }
    pywaggle->text.len += (size_t)n;
    pywaggle->n_bytes += (size_t)n;
    /* Rejected lines are skipped: retries would be a load, and the values old. */
    file->offset += (off_t)whole_lines(&pywaggle->text);
    int r = find_owner(pywaggle, file, &owner, &error);
    if (r < 0) {
        log_refused(pywaggle, file, r, &error);
        return;
    }
    take_lines(pywaggle, file, owner);
    push_owner_unref(pywaggle->store, owner);
}

/* Reads on, or leaves it to a later turn. */
static void take_turn(struct pywaggle *pywaggle, struct pywaggle_file *file, int fd, off_t size) {
    bool comes_first = file->waiting || !pywaggle->behind;
    bool is_much = size - file->offset > MAX_BYTES;
    file->waiting = !comes_first || pywaggle->n_bytes >= MAX_BYTES;
    if (!file->waiting) {
        read_on(pywaggle, file, fd);
    }
    pywaggle->more |= file->waiting || is_much;
}

static void visit_file(struct pywaggle *pywaggle, const struct directory *directory,
                       struct pywaggle_file *file, int fd, const struct pywaggle_sight *sight) {
    struct pywaggle_span followed = pywaggle_span_until_now(directory->begin_ns);
    pywaggle_file_meet(file, sight, &followed);
    if (sight->size > file->offset) {
        take_turn(pywaggle, file, fd, sight->size);
    }
}

static bool is_in(const struct pywaggle_file *file, const struct directory *directory) {
    return strcmp(file->directory, directory->path) == 0;
}

/* Takes up the plugin's log, if there is one and it is not known. One that is there and cannot be
 * opened is noted while it may be older than us, so that it is not taken for a new one later. */
static void discover(struct pywaggle *pywaggle, const struct directory *directory, int dirfd,
                     const char *plugin, bool below) {
    if (pywaggle_files_find(&pywaggle->files, directory->path, plugin, below) != NULL) {
        return;
    }
    struct pywaggle_sight sight;
    int fd CLEANUP_CLOSE = pywaggle_file_open(dirfd, below ? plugin : NULL, &sight);
    if (fd < 0 && (directory->settled || pywaggle_is_absence(fd))) {
        return;
    }
    struct pywaggle_file *file =
        pywaggle_files_add(&pywaggle->files, directory->path, plugin, below);
    if (file == NULL) {
        return;
    }
    file->early = !directory->settled;
    if (fd >= 0) {
        visit_file(pywaggle, directory, file, fd, &sight);
    } else {
        pywaggle_file_miss(file, fd);
    }
}

static void end_search(struct directory *directory) {
    if (directory->search != NULL) {
        closedir(TAKE(directory->search));
    }
}

static void note_crowd(struct directory *directory) {
    if (!directory->crowded) {
        log_warn("pywaggle: %s: more than %d entries; a plugin that is new there is noticed late",
                 directory->path, MAX_ENTRIES);
    }
    directory->crowded = true;
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
            directory->settled = true;
            return;
        }
        if (entry->d_name[0] != '.' && entry->d_type != DT_REG) {
            discover(pywaggle, directory, dirfd, entry->d_name, true);
        }
    }
    note_crowd(directory);
    pywaggle->more |= !directory->settled;
}

static void visit_known(struct pywaggle *pywaggle, const struct directory *directory, int dirfd) {
    for (size_t i = 0; i < pywaggle->files.n; i++) {
        struct pywaggle_file *file = &pywaggle->files.items[i];
        if (!is_in(file, directory)) {
            continue;
        }
        struct pywaggle_sight sight;
        int fd CLEANUP_CLOSE = pywaggle_file_open(dirfd, file->below ? file->plugin : NULL, &sight);
        if (fd >= 0) {
            visit_file(pywaggle, directory, file, fd, &sight);
        } else {
            pywaggle_file_miss(file, fd);
        }
    }
}

/* ---- directories ---- */

/* If the path is another directory than on the turn before, as after a mount, its logs may be older
 * than us although they appear now. */
static void note_directory(struct pywaggle *pywaggle, struct directory *directory, int fd) {
    struct stat st;
    if (fstat(fd, &st) < 0 || (directory->inode == st.st_ino && directory->device == st.st_dev)) {
        return;
    }
    directory->inode = st.st_ino;
    directory->device = st.st_dev;
    directory->settled = false;
    end_search(directory);
    for (size_t i = 0; i < pywaggle->files.n; i++) {
        struct pywaggle_file *file = &pywaggle->files.items[i];
        file->early |= is_in(file, directory);
    }
}

static void miss_directory(struct pywaggle *pywaggle, struct directory *directory, int code) {
    end_search(directory);
    for (size_t i = 0; i < pywaggle->files.n; i++) {
        struct pywaggle_file *file = &pywaggle->files.items[i];
        if (is_in(file, directory)) {
            pywaggle_file_miss(file, code);
        }
    }
}

static void visit_directory(struct pywaggle *pywaggle, struct directory *directory) {
    const char *path = directory->path;
    int fd CLEANUP_CLOSE = open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    int code = fd < 0 ? -errno : 0;
    if (fd < 0 && !directory->failing) {
        log_warn("pywaggle: open %s: %m (see --push.pywaggle-log)", path);
    } else if (fd >= 0 && directory->failing) {
        log_info("pywaggle: open %s: fine again", path);
    }
    directory->failing = fd < 0;
    if (fd < 0) {
        miss_directory(pywaggle, directory, code);
        return;
    }
    const char *slash = strrchr(path, '/');
    note_directory(pywaggle, directory, fd);
    visit_known(pywaggle, directory, fd);
    discover(pywaggle, directory, fd, slash != NULL && slash[1] != '\0' ? slash + 1 : path, false);
    search(pywaggle, directory, fd);
}

/* ---- turns ---- */

static void look(struct pywaggle *pywaggle) {
    pywaggle->more = false;
    pywaggle->n_bytes = 0;
    for (struct directory *d = pywaggle->directories; d != NULL && d->path != NULL; d++) {
        visit_directory(pywaggle, d);
    }
    pywaggle->behind = pywaggle->more;
}

static void fire(struct loop_timer *timer) {
    struct pywaggle *pywaggle = CONTAINER_OF(timer, struct pywaggle, timer);
    look(pywaggle);
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

static void forget_directories(struct directory *directories) {
    for (struct directory *d = directories; d != NULL && d->path != NULL; d++) {
        end_search(d);
        free(d->path);
    }
    free(directories);
}

void pywaggle_destroy(struct pywaggle *pywaggle) {
    if (pywaggle == NULL) {
        return;
    }
    loop_timer_remove(pywaggle->loop, &pywaggle->timer);
    forget_directories(pywaggle->directories);
    pywaggle_files_finish(&pywaggle->files);
    buf_finish(&pywaggle->text);
    free(pywaggle);
}

/* A copy without slashes at its end. */
static char *trimmed(const char *directory) {
    char *copy = mem_strdup(directory);
    for (size_t len = strlen(copy); len > 1 && copy[len - 1] == '/'; len--) {
        copy[len - 1] = '\0';
    }
    return copy;
}

static struct directory *find_directory(struct directory *directories, const char *path) {
    for (struct directory *d = directories; d != NULL && d->path != NULL; d++) {
        if (strcmp(d->path, path) == 0) {
            return d;
        }
    }
    return NULL;
}

/* What is known of a directory that was there before. */
static struct directory describe(struct directory *before, char *path) {
    const struct directory *known = find_directory(before, path);
    struct directory directory = {.begin_ns = clock_monotonic_ns()};
    if (known != NULL) {
        directory = *known;
        directory.search = NULL;
    }
    directory.path = path;
    return directory;
}

static struct directory *list_directories(const char *const *list, struct directory *before) {
    size_t n = 0;
    while (list[n] != NULL) {
        n++;
    }
    struct directory *directories = n > 0 ? mem_zalloc(n + 1, sizeof(*directories)) : NULL;
    for (size_t i = 0; i < n; i++) {
        directories[i] = describe(before, trimmed(list[i]));
    }
    return directories;
}

static void forget_files(struct pywaggle *pywaggle) {
    for (size_t i = pywaggle->files.n; i-- > 0;) {
        struct pywaggle_file *file = &pywaggle->files.items[i];
        if (find_directory(pywaggle->directories, file->directory) == NULL) {
            pywaggle_files_remove(&pywaggle->files, file);
        }
    }
}

void pywaggle_configure(struct pywaggle *pywaggle, const struct settings *settings) {
    struct directory *before = pywaggle->directories;
    pywaggle->directories = list_directories(settings_list(settings, "push.pywaggle-log"), before);
    forget_directories(before);
    forget_files(pywaggle);
    pywaggle->timer.due_ns = LOOP_NEVER;
    if (pywaggle->directories != NULL) {
        fire(&pywaggle->timer);
    }
}
