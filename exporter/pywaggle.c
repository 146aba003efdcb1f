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

enum { MAX_FILES = 256, MAX_BYTES_PER_TURN = 256 << 10, INTERVAL_MS = 500 };

static const char log_name[] = "data.ndjson";

/* A log and how far it has been read: up to the end of a line. */
struct log_file {
    char *path;
    char *plugin;
    dev_t device;
    ino_t inode;
    off_t offset;
    bool seen;    /* on this turn */
    bool failing; /* the fault was logged, its end was not */
};

struct pywaggle {
    struct loop *loop;
    struct push_store *store;
    struct loop_timer timer;
    char **directories;     /* NULL-terminated; or NULL */
    struct log_file *files; /* room for MAX_FILES; NULL: nothing was ever to follow */
    size_t n_files;
    struct buf text;
    bool settled; /* what is there by now was there before us */
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
    return done == 0 && text->len == MAX_BYTES_PER_TURN ? text->len : done;
}

/* ---- files ---- */

static int read_on(struct pywaggle *pywaggle, struct log_file *file, int fd) {
    struct push_identity identity = {.plugin = file->plugin};
    struct push_owner *owner;
    struct error error;
    buf_reset(&pywaggle->text);
    char *room = buf_reserve(&pywaggle->text, MAX_BYTES_PER_TURN);
    ssize_t n = room != NULL ? pread(fd, room, MAX_BYTES_PER_TURN, file->offset) : -1;
    if (n <= 0) {
        return n < 0 ? -errno : 0;
    }
    pywaggle->text.len += (size_t)n;
    int r = push_store_owner(pywaggle->store, &identity, &owner, &error);
    if (r < 0) {
        note_fault(file, r, &error);
        return r;
    }
    file->offset += (off_t)take_lines(pywaggle, file, owner);
    push_owner_unref(pywaggle->store, owner);
    return 0;
}

static void visit_file(struct pywaggle *pywaggle, struct log_file *file) {
    int fd CLEANUP_CLOSE = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
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
        read_on(pywaggle, file, fd);
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

/* Visits DIRECTORY/data.ndjson of the plugin; one that is there for the first time is taken up. */
static void visit(struct pywaggle *pywaggle, const char *directory, const char *plugin) {
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/%s", directory, log_name);
    struct log_file *file = find_file(pywaggle, buf_str(&path));
    if (file == NULL && pywaggle->n_files < MAX_FILES && access(buf_str(&path), F_OK) == 0) {
        file = &pywaggle->files[pywaggle->n_files];
        *file = (struct log_file){.path = buf_take(&path), .plugin = strdup(plugin)};
        if (file->path == NULL || file->plugin == NULL) {
            log_file_finish(file);
            return;
        }
        pywaggle->n_files++;
    }
    if (file != NULL) {
        visit_file(pywaggle, file);
    }
}

static void visit_directory(struct pywaggle *pywaggle, const char *directory) {
    const char *slash = strrchr(directory, '/');
    visit(pywaggle, directory, slash != NULL && slash[1] != '\0' ? slash + 1 : directory);
    DIR *dir = opendir(directory);
    if (dir == NULL) {
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.' && entry->d_type != DT_REG) {
            struct buf path CLEANUP_BUF = {0};
            buf_printf(&path, "%s/%s", directory, entry->d_name);
            visit(pywaggle, buf_str(&path), entry->d_name);
        }
    }
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
    for (char **d = pywaggle->directories; d != NULL && *d != NULL; d++) {
        visit_directory(pywaggle, *d);
    }
    drop_unseen(pywaggle);
    pywaggle->settled = true;
}

static void fire(struct loop_timer *timer) {
    struct pywaggle *pywaggle = CONTAINER_OF(timer, struct pywaggle, timer);
    look(pywaggle);
    timer->due_ns = clock_monotonic_ns() + INTERVAL_MS * CLOCK_NS_PER_MS;
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
    for (char **d = pywaggle->directories; d != NULL && *d != NULL; d++) {
        free(*d);
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
    pywaggle->directories = calloc(n + 1, sizeof(char *));
    if (pywaggle->files == NULL || pywaggle->directories == NULL) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char *copy = trimmed(list[i]);
        if (copy != NULL) {
            pywaggle->directories[n_copies++] = copy;
        }
    }
    fire(&pywaggle->timer);
}
