#include "collectors/container_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"

enum { MAX_WATCHES = 4096, EVENT_ROOM = 16384 };

#define WATCHED (IN_CREATE | IN_DELETE | IN_MOVE | IN_ONLYDIR)

struct watched {
    int descriptor;
    char *path;
};

struct container_watch {
    int fd;
    char *root;
    struct watched *rows;
    size_t n_rows, cap_rows;
    bool blind; /* something could not be watched: nothing can be relied on */
    struct buf path;
};

struct container_watch *container_watch_create(const char *root) {
    struct container_watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL) {
        return NULL;
    }
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    watch->root = strdup(root);
    if (watch->fd < 0 || watch->root == NULL) {
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

static bool add_row(struct container_watch *watch, int descriptor, const char *path) {
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
    watch->rows[watch->n_rows++] = (struct watched){.descriptor = descriptor, .path = copy};
    return true;
}

/* The kernel answers with the same number where the directory is watched already. */
void container_watch_add(struct container_watch *watch, const char *path) {
    buf_reset(&watch->path);
    buf_add_str(&watch->path, watch->root);
    buf_add_str(&watch->path, path);
    if (watch->path.failed) {
        return;
    }
    int descriptor = inotify_add_watch(watch->fd, buf_str(&watch->path), WATCHED);
    if (descriptor < 0) {
        watch->blind = watch->blind || errno == ENOSPC || errno == ENOMEM;
        return;
    }
    struct watched *row = find(watch, descriptor);
    if (row != NULL && strcmp(row->path, path) == 0) {
        return;
    }
    if (row != NULL) { /* it was renamed, as v1 allows */
        free(row->path);
        *row = watch->rows[--watch->n_rows];
    }
    if (watch->n_rows >= MAX_WATCHES || !add_row(watch, descriptor, path)) {
        inotify_rm_watch(watch->fd, descriptor);
        watch->blind = true;
    }
}

/* A removed cgroup says nothing to its own watch: the event in its parent ends it. */
static void drop(struct container_watch *watch, const char *path) {
    for (size_t i = 0; i < watch->n_rows; i++) {
        if (strcmp(watch->rows[i].path, path) == 0) {
            inotify_rm_watch(watch->fd, watch->rows[i].descriptor);
            free(watch->rows[i].path);
            watch->rows[i] = watch->rows[--watch->n_rows];
            return;
        }
    }
}

static void handle(struct container_watch *watch, const struct inotify_event *event,
                   container_watch_event *appeared, container_watch_event *vanished,
                   void *context) {
    const struct watched *parent = find(watch, event->wd);
    if (parent == NULL || (event->mask & IN_ISDIR) == 0 || event->len == 0) {
        return;
    }
    buf_reset(&watch->path);
    buf_add_str(&watch->path, parent->path);
    buf_add_char(&watch->path, '/');
    buf_add_str(&watch->path, event->name);
    char *path CLEANUP_FREE = buf_take(&watch->path);
    if (path == NULL) {
        return;
    }
    if ((event->mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
        appeared(context, path);
    } else {
        drop(watch, path);
        vanished(context, path);
    }
}

bool container_watch_read(struct container_watch *watch, container_watch_event *appeared,
                          container_watch_event *vanished, void *context) {
    _Alignas(struct inotify_event) char events[EVENT_ROOM];
    bool lost = watch->blind;
    for (;;) {
        ssize_t n = read(watch->fd, events, sizeof(events));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return lost || (n < 0 && errno != EAGAIN);
        }
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *event = (const struct inotify_event *)(events + at);
            lost = lost || (event->mask & (IN_Q_OVERFLOW | IN_MOVE)) != 0;
            handle(watch, event, appeared, vanished, context);
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    }
}
