#include "collectors/container/set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectors/cgroup/container_path.h"
#include "collectors/container/watch.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

#define WALK_NS (60 * CLOCK_NS_PER_SEC)
#define MIN_WALK_NS (CLOCK_NS_PER_SEC / 4)
#define HUNT_NS CLOCK_NS_PER_SEC

enum { MAX_HUNTS = 5 };

struct container_set {
    struct container_set_config config;
    struct container **rows;
    size_t n_rows, cap_rows;
    struct container_watch *watch; /* NULL: the kernel grants none */
    bool walk;                     /* due at once */
    int64_t next_walk_ns;
    int64_t next_hunt_ns;
    unsigned round;
    size_t next; /* the container that comes next if all is as in the round before */
    size_t hunted;
    size_t n_left_out;
    struct buf path;
};

static struct container *find(struct container_set *set, const char *path) {
    for (size_t i = 0; i < set->n_rows; i++) {
        size_t at = (set->next + i) % set->n_rows;
        if (strcmp(set->rows[at]->path, path) == 0) {
            set->next = at + 1;
            return set->rows[at];
        }
    }
    return NULL;
}

static void drop(struct container_set *set, size_t i) {
    struct container *container = set->rows[i];
    set->config.gone(set->config.context, container);
    if (container->watched) {
        container_watch_drop(set->watch, container->path);
    }
    container_destroy(container);
    memmove(&set->rows[i], &set->rows[i + 1], (set->n_rows - i - 1) * sizeof(struct container *));
    set->n_rows--;
}

static bool make_room(struct container_set *set) {
    if (set->n_rows < set->cap_rows) {
        return true;
    }
    size_t cap = 2 * set->cap_rows + 16;
    struct container **rows = reallocarray(set->rows, cap, sizeof(struct container *));
    if (rows == NULL) {
        return false;
    }
    set->rows = rows;
    set->cap_rows = cap;
    return true;
}

/* The other hierarchies mostly have it at the same path, if they have it already. */
static void enter_others(struct container_set *set, struct container *container) {
    for (size_t row = 0; row < set->config.tree->n_rows; row++) {
        if (row != set->config.tree->primary && container->place.fds[row] < 0) {
            cgroup_place_enter(&container->place, set->config.tree, row, container->path, 0);
        }
    }
}

/* A v1 host has the container in its v2 hierarchy a moment later, if at all. */
static void watch_it(struct container_set *set, struct container *container) {
    if (set->watch != NULL && !container->watched) {
        container->watched = container_watch_add_cgroup(set->watch, container->path);
    }
}

static void add(struct container_set *set, const char *path,
                const struct container_path *classified, uint64_t inode) {
    if (set->n_rows >= set->config.max_containers || !make_room(set)) {
        set->n_left_out++;
        return;
    }
    struct container *container = container_create(path, classified, set->config.peak_window_ns);
    if (container == NULL) {
        return;
    }
    size_t primary = set->config.tree->primary;
    struct stat stat;
    if (cgroup_place_enter(&container->place, set->config.tree, primary, path, inode) < 0 ||
        fstat(container->place.fds[primary], &stat) < 0) {
        container_destroy(container); /* gone already */
        return;
    }
    container->start_seconds = (double)stat.st_mtim.tv_sec + (double)stat.st_mtim.tv_nsec / 1e9;
    container->owner = container_owner(set->config.tree->rows[primary].path, path, classified);
    container->seen = set->round;
    enter_others(set, container);
    watch_it(set, container);
    set->rows[set->n_rows++] = container;
}

/* `path` is the container's own cgroup. A namesake that took its place is another container. */
static void see(struct container_set *set, const char *path,
                const struct container_path *classified, uint64_t inode) {
    struct container *container = find(set, path);
    size_t primary = set->config.tree->primary;
    if (container != NULL && inode != 0 && container->place.inodes[primary] != inode) {
        for (size_t i = 0; i < set->n_rows; i++) {
            if (set->rows[i] == container) {
                drop(set, i);
                break;
            }
        }
        container = NULL;
    }
    if (container != NULL) {
        container->seen = set->round;
        return;
    }
    add(set, path, classified, inode);
}

static bool visit(void *context, const char *path, uint64_t inode, size_t depth) {
    (void)depth;
    struct container_set *set = context;
    struct container_path classified;
    if (container_path_classify(path, &classified)) {
        see(set, path, &classified, inode);
        return false;
    }
    if (set->watch != NULL) {
        container_watch_add(set->watch, path);
    }
    return true;
}

static int walk(struct container_set *set, int64_t now_ns, struct error *err) {
    const struct cgroup_tree *tree = set->config.tree;
    set->round++;
    set->next = 0;
    set->n_left_out = 0;
    set->walk = false;
    set->next_walk_ns = now_ns + WALK_NS;
    if (set->watch != NULL) {
        container_watch_add(set->watch, "");
    }
    int r = cgroup_tree_walk(&tree->rows[tree->primary], "", &set->path, visit, set, err);
    if (r < 0) {
        return r;
    }
    for (size_t i = set->n_rows; i > 0; i--) {
        if (set->rows[i - 1]->seen != set->round) {
            drop(set, i - 1);
        }
    }
    return 0;
}

static bool lacks_a_place(const struct container_set *set, const struct container *container) {
    for (size_t row = 0; row < set->config.tree->n_rows; row++) {
        if (container->place.fds[row] < 0) {
            return true;
        }
    }
    return false;
}

static bool hunt_visit(void *context, const char *path, uint64_t inode, size_t depth) {
    (void)depth;
    struct container_set *set = context;
    struct container_path classified;
    if (!container_path_classify(path, &classified)) {
        return true;
    }
    for (size_t i = 0; i < set->n_rows; i++) {
        struct container *container = set->rows[i];
        if (container->place.fds[set->hunted] < 0 && strlen(container->id) == classified.id_len &&
            memcmp(container->id, classified.id, classified.id_len) == 0) {
            cgroup_place_enter(&container->place, set->config.tree, set->hunted, path, inode);
        }
    }
    return false;
}

/* A v1 hierarchy may have a container under another parent, or get it a moment later. */
static void hunt(struct container_set *set, int64_t now_ns) {
    unsigned rows = 0;
    if (now_ns < set->next_hunt_ns) {
        return;
    }
    for (size_t i = 0; i < set->n_rows; i++) {
        struct container *container = set->rows[i];
        if (container->n_hunts >= MAX_HUNTS || !lacks_a_place(set, container)) {
            continue;
        }
        container->n_hunts++;
        enter_others(set, container);
        for (size_t row = 0; row < set->config.tree->n_rows; row++) {
            rows |= container->place.fds[row] < 0 ? 1U << row : 0;
        }
    }
    for (set->hunted = 0; set->hunted < set->config.tree->n_rows; set->hunted++) {
        if ((rows & 1U << set->hunted) != 0) {
            cgroup_tree_walk(&set->config.tree->rows[set->hunted], "", &set->path, hunt_visit, set,
                             NULL);
        }
    }
    set->next_hunt_ns = now_ns + HUNT_NS;
}

static void appeared(void *context, const char *path) {
    struct container_set *set = context;
    const struct cgroup_tree *tree = set->config.tree;
    struct container_path classified;
    if (!container_path_classify(path, &classified)) {
        container_watch_add(set->watch, path);
        /* Whatever was made below it before it was watched. */
        cgroup_tree_walk(&tree->rows[tree->primary], path, &set->path, visit, set, NULL);
        return;
    }
    struct container *container = find(set, path);
    if (container != NULL) {
        enter_others(set, container);
        watch_it(set, container);
    }
    see(set, path, &classified, 0);
}

static void vanished(void *context, const char *path) {
    struct container_set *set = context;
    for (size_t i = 0; i < set->n_rows; i++) {
        if (strcmp(set->rows[i]->path, path) == 0) {
            drop(set, i);
            return;
        }
    }
}

static void changed(void *context, const char *path) {
    struct container_set *set = context;
    struct container *container = find(set, path);
    if (container != NULL) {
        set->config.changed(set->config.context, container);
    }
}

int container_set_fd(const struct container_set *set) {
    return set->watch != NULL ? container_watch_fd(set->watch) : -1;
}

void container_set_wake(struct container_set *set) {
    static const struct container_watch_events events = {
        .appeared = appeared,
        .vanished = vanished,
        .changed = changed,
    };
    if (set->watch == NULL || container_watch_read(set->watch, &events, set)) {
        set->walk = true;
    }
}

void container_set_drop_gone(struct container_set *set) {
    for (size_t i = set->n_rows; i > 0; i--) {
        if (set->rows[i - 1]->gone) {
            drop(set, i - 1);
        }
    }
}

int container_set_update(struct container_set *set, bool all, int64_t now_ns, struct error *err) {
    container_set_drop_gone(set);
    container_set_wake(set);
    int r = 0;
    if ((set->walk && (all || now_ns >= set->next_walk_ns - WALK_NS + MIN_WALK_NS)) ||
        now_ns >= set->next_walk_ns) {
        r = walk(set, now_ns, err);
    }
    hunt(set, now_ns);
    if (r == 0 && set->n_left_out > 0) {
        return error_set(err, -E2BIG,
                         "more than %zu containers (collector.container.max-containers)",
                         set->config.max_containers);
    }
    return r;
}

static const char *unified_path(const struct cgroup_tree *tree) {
    for (size_t i = 0; i < tree->n_rows; i++) {
        if (tree->rows[i].unified) {
            return tree->rows[i].path;
        }
    }
    return NULL;
}

int container_set_create(const struct container_set_config *config, struct container_set **ret_set,
                         struct error *err) {
    struct container_set *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    set->config = *config;
    set->walk = true;
    set->watch = container_watch_create(config->tree->rows[config->tree->primary].path,
                                        unified_path(config->tree));
    *ret_set = set;
    return 0;
}

void container_set_destroy(struct container_set *set) {
    if (set == NULL) {
        return;
    }
    for (size_t i = 0; i < set->n_rows; i++) {
        container_destroy(set->rows[i]);
    }
    free(set->rows);
    container_watch_destroy(set->watch);
    buf_finish(&set->path);
    free(set);
}

size_t container_set_n(const struct container_set *set) {
    return set->n_rows;
}

struct container *container_set_at(const struct container_set *set, size_t i) {
    return set->rows[i];
}
