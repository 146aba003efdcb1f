#include "collectors/container/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"

enum { MAX_WATCHES = 4096, EVENT_ROOM = 16384, MAX_READS = 64 };

#define WATCHED (IN_CREATE | IN_DELETE | IN_MOVE | IN_ONLYDIR)

enum watched_kind {
    WATCHED_DIRECTORY,
    WATCHED_BESIDE, /* the same directory in the v2 hierarchy */
    WATCHED_CGROUP, /* its cgroup.events */
};

struct watched {
    int descriptor;
    enum watched_kind kind;
    char *path;
};

struct container_watch {
    int fd;
    char *root;
    char *unified; /* or NULL */
    bool beside;   /* the two differ */
    struct watched *rows;
    size_t n_rows, cap_rows;
    bool blind; /* something could not be watched: nothing can be relied on */
    struct buf path;
};

struct container_watch *container_watch_create(const char *root, const char *unified) {
    struct container_watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL) {
        return NULL;
    }
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    watch->root = strdup(root);
    watch->unified = unified != NULL ? strdup(unified) : NULL;
    watch->beside = unified != NULL && strcmp(root, unified) != 0;
    if (watch->fd < 0 || watch->root == NULL || (unified != NULL && watch->unified == NULL)) {
        container_watch_destroy(watch);
        return NULL;
    }
    return watch;
}

void container_watch_destroy(struct container_watch *watch) {
    if (watch == NULL) {
        return;
    }
    if (watch->fd >= 0) {
        close(watch->fd);
    }
    for (size_t i = 0; i < watch->n_rows; i++) {
        free(watch->rows[i].path);
    }
    free(watch->rows);
    free(watch->root);
    free(watch->unified);
    buf_finish(&watch->path);
    free(watch);
}

static struct watched *find(const struct container_watch *watch, int descriptor) {
    for (size_t i = 0; i < watch->n_rows; i++) {
        if (watch->rows[i].descriptor == descriptor) {
            return &watch->rows[i];
        }
    }
    return NULL;
}

static bool add_row(struct container_watch *watch, int descriptor, enum watched_kind kind,
                    const char *path) {
    if (watch->n_rows == MAX_WATCHES) {
        return false;
    }
    if (watch->n_rows == watch->cap_rows) {
        size_t cap = 2 * watch->cap_rows + 16;
        struct watched *rows = reallocarray(watch->rows, cap, sizeof(*rows));
        if (rows == NULL) {
            return false;
        }
        watch->rows = rows;
        watch->cap_rows = cap;
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        return false;
    }
    watch->rows[watch->n_rows++] =
        (struct watched){.descriptor = descriptor, .kind = kind, .path = copy};
    return true;
}

/* The kernel answers with the same number where it is watched already. */
static int add(struct container_watch *watch, enum watched_kind kind, const char *path) {
    const bool cgroup = kind == WATCHED_CGROUP;
    buf_reset(&watch->path);
    buf_add_str(&watch->path, kind == WATCHED_DIRECTORY ? watch->root : watch->unified);
    buf_add_str(&watch->path, path);
    buf_add_str(&watch->path, cgroup ? "/cgroup.events" : "");
    if (watch->path.failed) {
        return -ENOMEM;
    }
    int descriptor =
        inotify_add_watch(watch->fd, buf_str(&watch->path), cgroup ? IN_MODIFY : WATCHED);
    if (descriptor < 0) {
        return -errno;
    }
    struct watched *row = find(watch, descriptor);
    if (row != NULL && strcmp(row->path, path) == 0) {
        return 0;
    }
    if (row != NULL) { /* it was renamed, as v1 allows */
        free(row->path);
        *row = watch->rows[--watch->n_rows];
    }
    if (!add_row(watch, descriptor, kind, path)) {
        inotify_rm_watch(watch->fd, descriptor);
        return -ENOSPC;
    }
    return 0;
}

void container_watch_add(struct container_watch *watch, const char *path) {
    int r = add(watch, WATCHED_DIRECTORY, path);
    watch->blind = watch->blind || r == -ENOSPC || r == -ENOMEM;
    if (watch->beside) {
        add(watch, WATCHED_BESIDE, path);
    }
}

bool container_watch_add_cgroup(struct container_watch *watch, const char *path) {
    return watch->unified != NULL && add(watch, WATCHED_CGROUP, path) == 0;
}

/* A removed cgroup says nothing to its own watch: the event in its parent ends it. */
void container_watch_drop(struct container_watch *watch, const char *path) {
    for (size_t i = watch->n_rows; i > 0; i--) {
        struct watched *row = &watch->rows[i - 1];
        if (strcmp(row->path, path) == 0) {
            inotify_rm_watch(watch->fd, row->descriptor);
            free(row->path);
            *row = watch->rows[--watch->n_rows];
        }
    }
}

int container_watch_fd(const struct container_watch *watch) {
    return watch->fd;
}

static void handle(struct container_watch *watch, const struct inotify_event *event,
                   const struct container_watch_events *events, void *context) {
    const struct watched *parent = find(watch, event->wd);
    if (parent != NULL && parent->kind == WATCHED_CGROUP) {
        if ((event->mask & IN_MODIFY) != 0) {
            events->changed(context, parent->path);
        }
        return;
    }
    if (parent == NULL || (event->mask & IN_ISDIR) == 0 || event->len == 0) {
        return;
    }
    const bool beside = parent->kind == WATCHED_BESIDE;
    buf_reset(&watch->path);
    buf_add_str(&watch->path, parent->path);
    buf_add_char(&watch->path, '/');
    buf_add_str(&watch->path, event->name);
    char *path CLEANUP_FREE = buf_take(&watch->path);
    if (path == NULL) {
        return;
    }
    if ((event->mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
        events->appeared(context, path);
    } else if (!beside) {
        container_watch_drop(watch, path);
        events->vanished(context, path);
    }
}

bool container_watch_read(struct container_watch *watch,
                          const struct container_watch_events *events, void *context) {
    _Alignas(struct inotify_event) char room[EVENT_ROOM];
    bool lost = watch->blind;
    for (int turn = 0; turn < MAX_READS; turn++) {
        ssize_t n = read(watch->fd, room, sizeof(room));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return lost || (n < 0 && errno != EAGAIN);
        }
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *event = (const struct inotify_event *)(room + at);
            lost = lost || (event->mask & (IN_Q_OVERFLOW | IN_MOVE)) != 0;
            handle(watch, event, events, context);
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    }
    return true; /* they come as fast as we read: a walk tells what is there */
}
