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

/* ---- one container ---- */

enum { SHORT_ID_LEN = 12, MAX_OWN_LABELS = 6, MAX_LABELS = 64 + MAX_OWN_LABELS };

const struct container_failure container_failures[CONTAINER_N_FAILURES] = {
    {CGROUP_MEMORY_PGFAULT, "pgfault", "container"},
    {CGROUP_MEMORY_PGFAULT, "pgfault", "hierarchy"},
    {CGROUP_MEMORY_PGMAJFAULT, "pgmajfault", "container"},
    {CGROUP_MEMORY_PGMAJFAULT, "pgmajfault", "hierarchy"},
};
static const char *const energy_sources[] = {
    [CONTAINER_ENERGY_CPU] = "cpu",
    [CONTAINER_ENERGY_GPU] = "gpu",
};

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

bool container_has_id(const struct container *container, const struct container_path *path) {
    return strlen(container->id) == path->id_len &&
           memcmp(container->id, path->id, path->id_len) == 0;
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
    rows_finish(&container->network.interfaces);
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

/* systemd writes characters that a unit's name may not contain as \xNN. */
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

/* The name if no runtime has one: that of the cgroup, the whole id as the kubelet uses it, or the
 * short id. */
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

static struct labels *render_own(const struct container *container) {
    const struct container_info *info = &container->info;
    struct label labels[MAX_LABELS] = {
        {"id", container->path},        {"name", info->name},           {"image", info->image},
        {"container", info->container}, {"namespace", info->namespace}, {"pod", info->pod},
    };
    size_t n = MAX_OWN_LABELS;
    for (size_t i = 0; i < info->n_labels && n < MAX_LABELS; i++) {
        char *name = label_name(info->labels[i].name);
        if (label_find(labels, n, name) != NULL) { /* two may become one */
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
            labels_with(container->labels, "failure_type", container_failures[i].type);
        container->failure_labels[i] = labels_with(type, "scope", container_failures[i].scope);
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

/* ---- inotify ---- */

enum { MAX_WATCHES = 4096, EVENT_ROOM = 16384, MAX_READS = 64, MAX_HUNTS = 5 };

#define WATCHED (IN_CREATE | IN_DELETE | IN_MOVE | IN_ONLYDIR)
#define WALK_NS (60 * CLOCK_NS_PER_SEC)
#define MIN_WALK_NS (CLOCK_NS_PER_SEC / 4)
#define HUNT_NS CLOCK_NS_PER_SEC

enum watched_kind {
    WATCHED_DIRECTORY, /* for cgroups created and removed in it */
    WATCHED_BESIDE,    /* the same directory in the v2 hierarchy */
    WATCHED_CGROUP,    /* its cgroup.events, for its first and last process */
};

struct watched {
    int descriptor;
    enum watched_kind kind;
    char *path; /* below the hierarchy's root */
};

static struct watched *find_watched(const struct container_set *set, int descriptor) {
    for (size_t i = 0; i < set->n_watched; i++) {
        if (set->watched[i].descriptor == descriptor) {
            return &set->watched[i];
        }
    }
    return NULL;
}

/* The kernel returns the same descriptor if the path is already watched. */
static int add_watch(struct container_set *set, enum watched_kind kind, const char *path) {
    const bool cgroup = kind == WATCHED_CGROUP;
    buf_reset(&set->event_path);
    buf_printf(&set->event_path, "%s%s%s", kind == WATCHED_DIRECTORY ? set->root : set->unified,
               path, cgroup ? "/cgroup.events" : "");
    int descriptor =
        inotify_add_watch(set->inotify_fd, buf_str(&set->event_path), cgroup ? IN_MODIFY : WATCHED);
    if (descriptor < 0) {
        return -errno;
    }
    struct watched *row = find_watched(set, descriptor);
    if (row != NULL && strcmp(row->path, path) == 0) {
        return 0;
    }
    if (row != NULL) { /* it was renamed, as v1 allows */
        free(row->path);
        *row = set->watched[--set->n_watched];
    }
    if (set->n_watched == MAX_WATCHES) {
        inotify_rm_watch(set->inotify_fd, descriptor);
        return -ENOSPC;
    }
    ARRAY_GROW(&set->watched, &set->cap_watched, set->n_watched + 1);
    set->watched[set->n_watched++] =
        (struct watched){.descriptor = descriptor, .kind = kind, .path = mem_strdup(path)};
    return 0;
}

/* Watches the directory `path` ("/system.slice"; "": the root). */
static void watch_directory(struct container_set *set, const char *path) {
    if (set->inotify_fd < 0) {
        return;
    }
    int r = add_watch(set, WATCHED_DIRECTORY, path);
    set->blind = set->blind || r == -ENOSPC || r == -ENOMEM;
    if (set->unified != NULL && strcmp(set->root, set->unified) != 0) {
        add_watch(set, WATCHED_BESIDE, path);
    }
}

/* A v1 host has the container in its v2 hierarchy a moment later, if at all. */
static void watch_container(struct container_set *set, struct container *container) {
    if (set->inotify_fd >= 0 && set->unified != NULL && !container->watched) {
        container->watched = add_watch(set, WATCHED_CGROUP, container->path) == 0;
    }
}

/* A removed cgroup sends no event to its own watch: the event in its parent ends it. */
static void drop_watches(struct container_set *set, const char *path) {
    for (size_t i = set->n_watched; i > 0; i--) {
        struct watched *row = &set->watched[i - 1];
        if (strcmp(row->path, path) == 0) {
            inotify_rm_watch(set->inotify_fd, row->descriptor);
            free(row->path);
            *row = set->watched[--set->n_watched];
        }
    }
}

/* ---- the set ---- */

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
    set->gone(set->context, container);
    if (container->watched) {
        drop_watches(set, container->path);
    }
    container_destroy(container);
    memmove(&set->rows[i], &set->rows[i + 1], (set->n_rows - i - 1) * sizeof(struct container *));
    set->n_rows--;
}

/* Most other hierarchies have the container at the same path, if they have it already. */
static void enter_others(struct container_set *set, struct container *container) {
    for (size_t row = 0; row < set->tree->n_rows; row++) {
        if (row != set->tree->primary && container->place.fds[row] < 0) {
            cgroup_place_enter(&container->place, set->tree, row, container->path, 0);
        }
    }
}

static void add(struct container_set *set, const char *path,
                const struct container_path *classified, uint64_t inode) {
    if (set->n_rows >= set->max_containers) {
        set->n_left_out++;
        return;
    }
    struct container *container = container_create(path, classified, set->peak_window_ns);
    size_t primary = set->tree->primary;
    struct stat stat;
    if (cgroup_place_enter(&container->place, set->tree, primary, path, inode) < 0 ||
        fstat(container->place.fds[primary], &stat) < 0) {
        container_destroy(container); /* gone already */
        return;
    }
    container->start_seconds = (double)stat.st_mtim.tv_sec + (double)stat.st_mtim.tv_nsec / 1e9;
    container->owner = container_owner(set->tree->rows[primary].path, classified);
    container->seen = set->round;
    enter_others(set, container);
    watch_container(set, container);
    ARRAY_GROW(&set->rows, &set->cap_rows, set->n_rows + 1);
    set->rows[set->n_rows++] = container;
}

/* `path` is the container's own cgroup. Another inode means another container. */
static void see(struct container_set *set, const char *path,
                const struct container_path *classified, uint64_t inode) {
    struct container *container = find(set, path);
    uint64_t known = container != NULL ? container->place.inodes[set->tree->primary] : 0;
    if (container != NULL && (inode == 0 || known == inode)) {
        container->seen = set->round;
        return;
    }
    if (container != NULL) {
        drop(set, set->next - 1);
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
    watch_directory(set, path);
    return true;
}

static int walk(struct container_set *set, int64_t now_ns, struct error *err) {
    const struct cgroup_tree *tree = set->tree;
    set->round++;
    set->next = 0;
    set->n_left_out = 0;
    set->walk = false;
    set->next_walk_ns = now_ns + WALK_NS;
    watch_directory(set, "");
    int r = cgroup_tree_walk(&tree->rows[tree->primary], "", &set->walk_path, visit, set, err);
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

/* The hierarchies that the container is not in yet: a bit each. */
static unsigned missing_rows(const struct container_set *set, const struct container *container) {
    unsigned rows = 0;
    for (size_t row = 0; row < set->tree->n_rows; row++) {
        rows |= container->place.fds[row] < 0 ? 1U << row : 0;
    }
    return rows;
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
        if (container->place.fds[set->hunted] < 0 && container_has_id(container, &classified)) {
            cgroup_place_enter(&container->place, set->tree, set->hunted, path, inode);
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
        if (container->n_hunts < MAX_HUNTS && missing_rows(set, container) != 0) {
            container->n_hunts++;
            enter_others(set, container);
            rows |= missing_rows(set, container);
        }
    }
    for (set->hunted = 0; set->hunted < set->tree->n_rows; set->hunted++) {
        if ((rows & 1U << set->hunted) != 0) {
            cgroup_tree_walk(&set->tree->rows[set->hunted], "", &set->walk_path, hunt_visit, set,
                             NULL);
        }
    }
    set->next_hunt_ns = now_ns + HUNT_NS;
}

static void appeared(struct container_set *set, const char *path) {
    const struct cgroup_tree *tree = set->tree;
    struct container_path classified;
    if (!container_path_classify(path, &classified)) {
        watch_directory(set, path);
        /* Cgroups may have been created in it before it was watched. */
        cgroup_tree_walk(&tree->rows[tree->primary], path, &set->walk_path, visit, set, NULL);
        return;
    }
    struct container *container = find(set, path);
    if (container != NULL) {
        enter_others(set, container);
        watch_container(set, container);
    }
    see(set, path, &classified, 0);
}

static void handle_event(struct container_set *set, const struct inotify_event *event) {
    const struct watched *parent = find_watched(set, event->wd);
    if (parent != NULL && parent->kind == WATCHED_CGROUP) {
        struct container *container =
            (event->mask & IN_MODIFY) != 0 ? find(set, parent->path) : NULL;
        if (container != NULL) {
            set->changed(set->context, container);
        }
        return;
    }
    if (parent == NULL || (event->mask & IN_ISDIR) == 0 || event->len == 0) {
        return;
    }
    const bool beside = parent->kind == WATCHED_BESIDE;
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/%s", parent->path, event->name);
    if ((event->mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
        appeared(set, buf_str(&path));
    } else if (!beside) {
        drop_watches(set, buf_str(&path));
        if (find(set, buf_str(&path)) != NULL) {
            drop(set, set->next - 1);
        }
    }
}

/* Handles all events without waiting. False if any were lost: the tree must be walked. */
static bool read_events(struct container_set *set) {
    _Alignas(struct inotify_event) char room[EVENT_ROOM];
    bool lost = set->blind;
    for (int turn = 0; turn < MAX_READS; turn++) {
        ssize_t n = read(set->inotify_fd, room, sizeof(room));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return !lost && (n == 0 || errno == EAGAIN);
        }
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *event = (const struct inotify_event *)(room + at);
            lost = lost || (event->mask & (IN_Q_OVERFLOW | IN_MOVE)) != 0;
            handle_event(set, event);
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    }
    return false; /* they come as fast as we read */
}

void container_set_wake(struct container_set *set) {
    set->walk = set->inotify_fd < 0 || !read_events(set) || set->walk;
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
                         set->max_containers);
    }
    return r;
}

void container_set_open(struct container_set *set) {
    const struct cgroup_tree *tree = set->tree;
    set->walk = true;
    set->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    set->root = tree->rows[tree->primary].path;
    for (size_t i = 0; i < tree->n_rows && set->unified == NULL; i++) {
        set->unified = tree->rows[i].unified ? tree->rows[i].path : NULL;
    }
}

void container_set_close(struct container_set *set) {
    if (set->root == NULL) {
        return;
    }
    for (size_t i = 0; i < set->n_rows; i++) {
        container_destroy(set->rows[i]);
    }
    free(set->rows);
    for (size_t i = 0; i < set->n_watched; i++) {
        free(set->watched[i].path);
    }
    free(set->watched);
    cleanup_close(&set->inotify_fd);
    buf_finish(&set->walk_path);
    buf_finish(&set->event_path);
}
