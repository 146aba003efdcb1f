#include "collectors/container/set.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectors/cgroup/container_path.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"

/* Directories of cgroups that are watched for others being made or removed in them, and cgroups
 * that are watched for their last process leaving (inotify). */
struct watch;

typedef void watch_event(void *context, const char *path);

/* What is called: */
struct watch_events {
    watch_event *appeared; /* a directory; where there are two hierarchies, twice */
    watch_event *vanished;
    watch_event *changed; /* the first process came into a cgroup, or the last one left */
};

enum { SHORT_ID_LEN = 12, MAX_OWN_LABELS = 6, MAX_LABELS = 64 + MAX_OWN_LABELS };

const enum cgroup_value container_failure_values[CONTAINER_N_FAILURES] = {
    CGROUP_MEMORY_PGFAULT,
    CGROUP_MEMORY_PGFAULT,
    CGROUP_MEMORY_PGMAJFAULT,
    CGROUP_MEMORY_PGMAJFAULT,
};
static const char *const failure_types[] = {"pgfault", "pgfault", "pgmajfault", "pgmajfault"};
static const char *const energy_sources[] = {
    [CONTAINER_ENERGY_CPU] = "cpu",
    [CONTAINER_ENERGY_GPU] = "gpu",
};
static const char *const failure_scopes[] = {"container", "hierarchy", "container", "hierarchy"};

struct container *container_create(const char *path, const struct container_path *classified,
                                   int64_t peak_window_ns) {
    struct container *container = mem_zalloc(1, sizeof(*container));
    cgroup_place_init(&container->place);
    container_network_init(&container->network);
    peak_init(&container->peak, peak_window_ns);
    container->cpu_fd = -1;
    container->counted_seconds = NAN;
    container->runtime = classified->runtime;
    container->path = mem_strdup(path);
    container->id = mem_strndup(classified->id, classified->id_len);
    if (classified->pod_uid != NULL) {
        container->pod_uid = mem_strndup(classified->pod_uid, classified->pod_uid_len);
    }
    return container;
}

static void drop_labels(struct container *container) {
    labels_destroy(TAKE(container->labels));
    labels_destroy(TAKE(container->cpu_labels));
    for (size_t i = 0; i < CONTAINER_N_FAILURES; i++) {
        labels_destroy(TAKE(container->failure_labels[i]));
    }
    for (size_t i = 0; i < CONTAINER_N_ENERGY_SOURCES; i++) {
        labels_destroy(TAKE(container->energy_labels[i]));
    }
    io_series_finish(&container->io);
    container_network_relabel(&container->network);
}

void container_destroy(struct container *container) {
    drop_labels(container);
    container_info_finish(&container->info);
    container_network_finish(&container->network);
    cgroup_place_finish(&container->place);
    if (container->cpu_fd >= 0) {
        close(container->cpu_fd);
    }
    free(container->path);
    free(container->id);
    free(container->pod_uid);
    free(container);
}

static int hex_digit(char c) {
    const char *digits = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* systemd writes what a unit's name may not hold as \xNN. */
static char *unescape(const char *text) {
    struct buf out = {0};
    while (*text != '\0') {
        if (text[0] == '\\' && text[1] == 'x' && hex_digit(text[2]) > 0 &&
            hex_digit(text[3]) >= 0) {
            buf_add_char(&out, (char)(hex_digit(text[2]) * 16 + hex_digit(text[3])));
            text += 4;
        } else {
            buf_add_char(&out, *text++);
        }
    }
    return buf_take(&out);
}

/* What a container is called where no runtime tells: by its own name, by all of its id as the
 * kubelet does, or by as much of the id as people use. */
static char *fallback_name(const struct container *container) {
    switch (container->runtime) {
    case CONTAINER_LXC:
    case CONTAINER_NSPAWN:
        return unescape(container->id);
    case CONTAINER_CONTAINERD:
    case CONTAINER_CRIO:
        return mem_strdup(container->id);
    default:
        return mem_strndup(container->id, SHORT_ID_LEN);
    }
}

/* "com.docker.compose.service" becomes container_label_com_docker_compose_service. */
static char *label_name(const char *name) {
    struct buf out = {0};
    buf_add_str(&out, "container_label_");
    for (; *name != '\0'; name++) {
        buf_add_char(&out, isalnum((unsigned char)*name) ? *name : '_');
    }
    return buf_take(&out);
}

static bool has_label(const struct label *labels, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(labels[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static struct labels *render_own(const struct container *container) {
    const struct container_info *info = &container->info;
    struct label labels[MAX_LABELS] = {
        {"id", container->path},        {"name", info->name},           {"image", info->image},
        {"container", info->container}, {"namespace", info->namespace}, {"pod", info->pod},
    };
    size_t n = MAX_OWN_LABELS;
    for (size_t i = 0; i < info->n_labels && n < MAX_LABELS; i++) {
        char *name = label_name(info->labels[i].name);
        if (has_label(labels, n, name)) { /* two may become one */
            free(name);
            continue;
        }
        labels[n++] = (struct label){.name = name, .value = info->labels[i].value};
    }
    struct labels *rendered = labels_create(labels, n);
    for (size_t i = MAX_OWN_LABELS; i < n; i++) {
        free((char *)labels[i].name);
    }
    return rendered;
}

static void render(struct container *container) {
    container->labels = render_own(container);
    container->cpu_labels = labels_with(container->labels, "cpu", "total");
    for (size_t i = 0; i < CONTAINER_N_FAILURES; i++) {
        struct labels *type CLEANUP_LABELS =
            labels_with(container->labels, "failure_type", failure_types[i]);
        container->failure_labels[i] = labels_with(type, "scope", failure_scopes[i]);
    }
    for (size_t i = 0; i < CONTAINER_N_ENERGY_SOURCES; i++) {
        container->energy_labels[i] = labels_with(container->labels, "source", energy_sources[i]);
    }
}

void container_describe(struct container *container, struct container_info *info,
                        bool (*shown)(void *context, const char *name, const char *image),
                        void *context) {
    if (info->name == NULL) {
        info->name = fallback_name(container);
    }
    if (container->labels != NULL && container_info_equal(&container->info, info)) {
        container_info_finish(info);
        return;
    }
    drop_labels(container);
    container_info_finish(&container->info);
    container->info = *info;
    *info = (struct container_info){0};
    const char *image = container->info.image;
    if (shown(context, container->info.name, image != NULL ? image : "")) {
        render(container);
    }
}

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

struct watch {
    int fd;
    char *root;
    char *unified; /* or NULL */
    bool beside;   /* the two differ */
    struct watched *rows;
    size_t n_rows, cap_rows;
    bool blind; /* something could not be watched: nothing can be relied on */
    struct buf path;
};

/* Paths are below `root`, a hierarchy that has all containers. `unified` is the v2 hierarchy, where
 * the kernel tells that a cgroup has become empty: the same, another one that is watched beside it,
 * or NULL. NULL where the kernel grants no inotify or memory is out. */
static struct watch *watch_create(const char *root, const char *unified) {
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    struct watch *watch = mem_zalloc(1, sizeof(*watch));
    watch->fd = fd;
    watch->root = mem_strdup(root);
    watch->unified = unified != NULL ? mem_strdup(unified) : NULL;
    watch->beside = unified != NULL && strcmp(root, unified) != 0;
    return watch;
}

/* accepts NULL */
static void watch_destroy(struct watch *watch) {
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

static struct watched *find_watched(const struct watch *watch, int descriptor) {
    for (size_t i = 0; i < watch->n_rows; i++) {
        if (watch->rows[i].descriptor == descriptor) {
            return &watch->rows[i];
        }
    }
    return NULL;
}

static bool add_row(struct watch *watch, int descriptor, enum watched_kind kind, const char *path) {
    if (watch->n_rows == MAX_WATCHES) {
        return false;
    }
    ARRAY_GROW(&watch->rows, &watch->cap_rows, watch->n_rows + 1);
    watch->rows[watch->n_rows++] =
        (struct watched){.descriptor = descriptor, .kind = kind, .path = mem_strdup(path)};
    return true;
}

/* The kernel answers with the same number where it is watched already. */
static int add_watch(struct watch *watch, enum watched_kind kind, const char *path) {
    const bool cgroup = kind == WATCHED_CGROUP;
    buf_reset(&watch->path);
    buf_add_str(&watch->path, kind == WATCHED_DIRECTORY ? watch->root : watch->unified);
    buf_add_str(&watch->path, path);
    buf_add_str(&watch->path, cgroup ? "/cgroup.events" : "");
    int descriptor =
        inotify_add_watch(watch->fd, buf_str(&watch->path), cgroup ? IN_MODIFY : WATCHED);
    if (descriptor < 0) {
        return -errno;
    }
    struct watched *row = find_watched(watch, descriptor);
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

/* Watches the directory `path` ("/system.slice"; "": the root), if it is not yet. */
static void watch_add(struct watch *watch, const char *path) {
    int r = add_watch(watch, WATCHED_DIRECTORY, path);
    watch->blind = watch->blind || r == -ENOSPC || r == -ENOMEM;
    if (watch->beside) {
        add_watch(watch, WATCHED_BESIDE, path);
    }
}

/* Watches whether anything is in the cgroup `path`. False where that cannot be watched (yet). */
static bool watch_add_cgroup(struct watch *watch, const char *path) {
    return watch->unified != NULL && add_watch(watch, WATCHED_CGROUP, path) == 0;
}

/* Stops watching the cgroup `path`. (A removed cgroup sends no event to its own watch; the event in
 * its parent ends it.) */
static void watch_drop(struct watch *watch, const char *path) {
    for (size_t i = watch->n_rows; i > 0; i--) {
        struct watched *row = &watch->rows[i - 1];
        if (strcmp(row->path, path) == 0) {
            inotify_rm_watch(watch->fd, row->descriptor);
            free(row->path);
            *row = watch->rows[--watch->n_rows];
        }
    }
}

/* The descriptor that is readable while there is something to be told. */
static int watch_fd(const struct watch *watch) {
    return watch->fd;
}

static void handle_event(struct watch *watch, const struct inotify_event *event,
                         const struct watch_events *events, void *context) {
    const struct watched *parent = find_watched(watch, event->wd);
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
    if ((event->mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
        events->appeared(context, path);
    } else if (!beside) {
        watch_drop(watch, path);
        events->vanished(context, path);
    }
}

/* Tells of all that has happened, in order, without waiting. True: something was lost or could not
 * be watched, and the whole tree is to be looked at. */
static bool watch_read(struct watch *watch, const struct watch_events *events, void *context) {
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
            handle_event(watch, event, events, context);
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    }
    return true; /* they come as fast as we read: a walk tells what is there */
}

#define WALK_NS (60 * CLOCK_NS_PER_SEC)
#define MIN_WALK_NS (CLOCK_NS_PER_SEC / 4)
#define HUNT_NS CLOCK_NS_PER_SEC

enum { MAX_HUNTS = 5 };

struct container_set {
    struct container_set_config config;
    struct container **rows;
    size_t n_rows, cap_rows;
    struct watch *watch; /* NULL: the kernel grants none */
    bool walk;           /* due at once */
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
        watch_drop(set->watch, container->path);
    }
    container_destroy(container);
    memmove(&set->rows[i], &set->rows[i + 1], (set->n_rows - i - 1) * sizeof(struct container *));
    set->n_rows--;
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
static void watch_container(struct container_set *set, struct container *container) {
    if (set->watch != NULL && !container->watched) {
        container->watched = watch_add_cgroup(set->watch, container->path);
    }
}

static void add(struct container_set *set, const char *path,
                const struct container_path *classified, uint64_t inode) {
    if (set->n_rows >= set->config.max_containers) {
        set->n_left_out++;
        return;
    }
    struct container *container = container_create(path, classified, set->config.peak_window_ns);
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
    watch_container(set, container);
    ARRAY_GROW(&set->rows, &set->cap_rows, set->n_rows + 1);
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
        watch_add(set->watch, path);
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
        watch_add(set->watch, "");
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
        watch_add(set->watch, path);
        /* Whatever was made below it before it was watched. */
        cgroup_tree_walk(&tree->rows[tree->primary], path, &set->path, visit, set, NULL);
        return;
    }
    struct container *container = find(set, path);
    if (container != NULL) {
        enter_others(set, container);
        watch_container(set, container);
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
    return set->watch != NULL ? watch_fd(set->watch) : -1;
}

void container_set_wake(struct container_set *set) {
    static const struct watch_events events = {
        .appeared = appeared,
        .vanished = vanished,
        .changed = changed,
    };
    if (set->watch == NULL || watch_read(set->watch, &events, set)) {
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

struct container_set *container_set_create(const struct container_set_config *config) {
    struct container_set *set = mem_zalloc(1, sizeof(*set));
    set->config = *config;
    set->walk = true;
    set->watch =
        watch_create(config->tree->rows[config->tree->primary].path, unified_path(config->tree));
    return set;
}

void container_set_destroy(struct container_set *set) {
    if (set == NULL) {
        return;
    }
    for (size_t i = 0; i < set->n_rows; i++) {
        container_destroy(set->rows[i]);
    }
    free(set->rows);
    watch_destroy(set->watch);
    buf_finish(&set->path);
    free(set);
}

size_t container_set_n(const struct container_set *set) {
    return set->n_rows;
}

struct container *container_set_at(const struct container_set *set, size_t i) {
    return set->rows[i];
}
