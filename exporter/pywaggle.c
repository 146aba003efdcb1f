#include "exporter/pywaggle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/core/clock.h"
#include "exporter/core/container.h"
#include "exporter/core/log.h"
#include "exporter/pywaggle_line.h"

/* How much is read of one log at a time, which takes a few milliseconds, and of all of them per
 * turn. Where more is there, the next turn comes sooner. */
enum { MAX_FILES = 256, MAX_BYTES = 64 << 10, INTERVAL_MS = 500, SOON_MS = 10 };

static const char log_name[] = "data.ndjson";

/* A log and how far it has been read: up to the end of a line. */
struct log_file {
    char *path;
    char *plugin;
    dev_t device;
    ino_t inode;
    off_t offset;
    bool seen;    /* on this turn */
    bool waiting; /* for a later turn to be read on */
    bool failing; /* the fault was logged, its end was not */
};

struct directory {
    char *path;
    bool failing;
};

struct pywaggle {
    struct loop *loop;
    struct push_store *store;
    struct loop_timer timer;
    struct directory *directories; /* the last without a path; or NULL */
    struct log_file *files;        /* room for MAX_FILES; NULL: nothing was ever to follow */
    size_t n_files;
    struct buf text;
    bool settled; /* what is there by now was there before us */
    bool behind;  /* the last turn left something: who waited then comes first */
    bool more;    /* this one does */
    size_t n_bytes;
};

/* ---- lines ---- */

static int take_line(struct pywaggle *pywaggle, struct push_owner *owner, char *line, size_t len,
                     struct error *err) {
    struct pywaggle_line parsed = {.n_updates = 0};
    int r = pywaggle_line_read(line, len, &parsed, err);
    if (r < 0) {
        push_store_count_refused(pywaggle->store, -EBADMSG);
        return r;
    }
    struct push_batch batch = {.updates = parsed.updates, .n_updates = parsed.n_updates};
    return push_store_apply(pywaggle->store, owner, &batch, NULL, err);
}

static void note_fault(struct log_file *file, int code, const struct error *error) {
    if (code < 0 && !file->failing) {
        log_warn("pywaggle: %s: %s", file->path, error->text);
    } else if (code == 0 && file->failing) {
        log_info("pywaggle: %s: fine again", file->path);
    }
    file->failing = code < 0;
}

/* Takes the whole lines of the text; returns how many bytes they are. */
static size_t take_lines(struct pywaggle *pywaggle, struct log_file *file,
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
            note_fault(file, take_line(pywaggle, owner, line, len, &error), &error);
        }
    }
    /* A line that fills all the room is none of pywaggle's: it is passed over piece by piece. */
    return done == 0 && text->len == MAX_BYTES ? text->len : done;
}

/* ---- files ---- */

static int read_on(struct pywaggle *pywaggle, struct log_file *file, int fd) {
    struct push_identity identity = {.plugin = file->plugin};
    struct push_owner *owner;
    struct error error;
    buf_reset(&pywaggle->text);
    char *room = buf_reserve(&pywaggle->text, MAX_BYTES);
    ssize_t n = room != NULL ? pread(fd, room, MAX_BYTES, file->offset) : -1;
    if (n <= 0) {
        return n < 0 ? -errno : 0;
    }
    pywaggle->text.len += (size_t)n;
    pywaggle->n_bytes += (size_t)n;
    int r = push_store_owner(pywaggle->store, &identity, &owner, &error);
    if (r < 0) {
        note_fault(file, r, &error);
        return r;
    }
    file->offset += (off_t)take_lines(pywaggle, file, owner);
    push_owner_unref(pywaggle->store, owner);
    return 0;
}

/* Reads on, or leaves it to a later turn. */
static void take_turn(struct pywaggle *pywaggle, struct log_file *file, int fd, off_t size) {
    bool comes_first = file->waiting || !pywaggle->behind;
    bool is_much = size - file->offset > MAX_BYTES;
    file->waiting = !comes_first || pywaggle->n_bytes >= MAX_BYTES;
    if (!file->waiting) {
        read_on(pywaggle, file, fd);
    }
    pywaggle->more |= file->waiting || is_much;
}

static void visit_file(struct pywaggle *pywaggle, struct log_file *file, int fd) {
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        return;
    }
    file->seen = true;
    bool known = file->inode == st.st_ino && file->device == st.st_dev;
    if (!known || st.st_size < file->offset) { /* begun anew, or cut */
        bool old = !pywaggle->settled && file->inode == 0;
        file->inode = st.st_ino;
        file->device = st.st_dev;
        file->offset = old ? st.st_size : 0;
    }
    if (st.st_size > file->offset) {
        take_turn(pywaggle, file, fd, st.st_size);
    }
}

static struct log_file *find_file(struct pywaggle *pywaggle, const char *path) {
    for (size_t i = 0; i < pywaggle->n_files; i++) {
        if (strcmp(pywaggle->files[i].path, path) == 0) {
            return &pywaggle->files[i];
        }
    }
    return NULL;
}

static void log_file_finish(struct log_file *file) {
    free(file->path);
    free(file->plugin);
    *file = (struct log_file){0};
}

/* Visits the log in a directory of the plugin's; one that is there for the first time is taken up.
 * Plugins write there, so no links are followed: they could lead to any file that we may read. */
static void visit(struct pywaggle *pywaggle, int dirfd, const char *directory, const char *plugin) {
    struct buf path CLEANUP_BUF = {0};
    int fd CLEANUP_CLOSE = openat(dirfd, log_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0) {
        return;
    }
    buf_printf(&path, "%s/%s", directory, log_name);
    struct log_file *file = find_file(pywaggle, buf_str(&path));
    if (file == NULL && pywaggle->n_files < MAX_FILES) {
        file = &pywaggle->files[pywaggle->n_files];
        *file = (struct log_file){.path = buf_take(&path), .plugin = strdup(plugin)};
        if (file->path == NULL || file->plugin == NULL) {
            log_file_finish(file);
            return;
        }
        pywaggle->n_files++;
    }
    if (file != NULL) {
        visit_file(pywaggle, file, fd);
    }
}

static void visit_below(struct pywaggle *pywaggle, DIR *dir, const char *directory) {
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.' || entry->d_type == DT_REG) {
            continue;
        }
        int fd CLEANUP_CLOSE =
            openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW);
        if (fd >= 0) {
            struct buf path CLEANUP_BUF = {0};
            buf_printf(&path, "%s/%s", directory, entry->d_name);
            visit(pywaggle, fd, buf_str(&path), entry->d_name);
        }
    }
}

static void visit_directory(struct pywaggle *pywaggle, struct directory *directory) {
    const char *path = directory->path;
    DIR *dir = opendir(path);
    if (dir == NULL && !directory->failing) {
        log_warn("pywaggle: open %s: %m (see --push.pywaggle-log)", path);
    } else if (dir != NULL && directory->failing) {
        log_info("pywaggle: open %s: fine again", path);
    }
    directory->failing = dir == NULL;
    if (dir == NULL) {
        return;
    }
    const char *slash = strrchr(path, '/');
    visit(pywaggle, dirfd(dir), path, slash != NULL && slash[1] != '\0' ? slash + 1 : path);
    visit_below(pywaggle, dir, path);
    closedir(dir);
}

static void drop_unseen(struct pywaggle *pywaggle) {
    size_t kept = 0;
    for (size_t i = 0; i < pywaggle->n_files; i++) {
        struct log_file *file = &pywaggle->files[i];
        if (!file->seen) {
            log_file_finish(file);
            continue;
        }
        file->seen = false;
        pywaggle->files[kept++] = *file;
    }
    pywaggle->n_files = kept;
}

/* ---- turns ---- */

static void look(struct pywaggle *pywaggle) {
    pywaggle->more = false;
    pywaggle->n_bytes = 0;
    for (struct directory *d = pywaggle->directories; d != NULL && d->path != NULL; d++) {
        visit_directory(pywaggle, d);
    }
    drop_unseen(pywaggle);
    pywaggle->settled = true;
    pywaggle->behind = pywaggle->more;
}

static void fire(struct loop_timer *timer) {
    struct pywaggle *pywaggle = CONTAINER_OF(timer, struct pywaggle, timer);
    bool busy = push_store_is_applying(pywaggle->store);
    if (!busy) {
        look(pywaggle);
    }
    timer->due_ns =
        clock_monotonic_ns() + (busy || pywaggle->more ? SOON_MS : INTERVAL_MS) * CLOCK_NS_PER_MS;
}

struct pywaggle *pywaggle_create(struct loop *loop, struct push_store *store) {
    struct pywaggle *pywaggle = calloc(1, sizeof(*pywaggle));
    if (pywaggle != NULL) {
        pywaggle->loop = loop;
        pywaggle->store = store;
        pywaggle->timer = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = fire};
        loop_timer_add(loop, &pywaggle->timer);
    }
    return pywaggle;
}

static void forget_directories(struct pywaggle *pywaggle) {
    for (struct directory *d = pywaggle->directories; d != NULL && d->path != NULL; d++) {
        free(d->path);
    }
    free(TAKE(pywaggle->directories));
}

void pywaggle_destroy(struct pywaggle *pywaggle) {
    if (pywaggle == NULL) {
        return;
    }
    loop_timer_remove(pywaggle->loop, &pywaggle->timer);
    forget_directories(pywaggle);
    for (size_t i = 0; i < pywaggle->n_files; i++) {
        log_file_finish(&pywaggle->files[i]);
    }
    free(pywaggle->files);
    buf_finish(&pywaggle->text);
    free(pywaggle);
}

/* A copy without slashes at its end. */
static char *trimmed(const char *directory) {
    char *copy = strdup(directory);
    for (size_t len = copy != NULL ? strlen(copy) : 0; len > 1 && copy[len - 1] == '/'; len--) {
        copy[len - 1] = '\0';
    }
    return copy;
}

void pywaggle_configure(struct pywaggle *pywaggle, const struct settings *settings) {
    const char *const *list = settings_list(settings, "push.pywaggle-log");
    size_t n = 0, n_copies = 0;
    while (list[n] != NULL) {
        n++;
    }
    forget_directories(pywaggle);
    pywaggle->timer.due_ns = LOOP_NEVER;
    if (n == 0) {
        return;
    }
    if (pywaggle->files == NULL) {
        pywaggle->files = calloc(MAX_FILES, sizeof(*pywaggle->files));
    }
    pywaggle->directories = calloc(n + 1, sizeof(struct directory));
    if (pywaggle->files == NULL || pywaggle->directories == NULL) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char *copy = trimmed(list[i]);
        if (copy != NULL) {
            pywaggle->directories[n_copies++].path = copy;
        }
    }
    fire(&pywaggle->timer);
}
