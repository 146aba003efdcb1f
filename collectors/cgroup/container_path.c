#include "collectors/cgroup/container_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/scan.h"

enum { ID_LEN = 64, UUID_LEN = 36, HASH_UID_LEN = 32 };

static const struct {
    const char *prefix; /* of a component that ends in an id */
    enum container_runtime runtime;
} prefixes[] = {
    {"cri-containerd-", CONTAINER_CONTAINERD},
    {"crio-", CONTAINER_CRIO},
    {"docker-", CONTAINER_DOCKER},
    {"libpod-", CONTAINER_PODMAN},
    {"libpod-payload-", CONTAINER_PODMAN},
    {"nerdctl-", CONTAINER_CONTAINERD},
};

static const struct {
    const char *parent; /* of a component that is an id */
    enum container_runtime runtime;
} parents[] = {
    {"docker", CONTAINER_DOCKER},
    {"kubepods", CONTAINER_CONTAINERD},
};

static bool begins(struct scan_word word, const char *prefix) {
    size_t len = strlen(prefix);
    return word.len > len && memcmp(word.text, prefix, len) == 0;
}

static bool ends(struct scan_word word, const char *suffix) {
    size_t len = strlen(suffix);
    return word.len > len && memcmp(word.text + word.len - len, suffix, len) == 0;
}

static struct scan_word without_suffix(struct scan_word word, const char *suffix) {
    word.len -= ends(word, suffix) ? strlen(suffix) : 0;
    return word;
}

static struct scan_word without_prefix(struct scan_word word, const char *prefix) {
    size_t len = strlen(prefix);
    return (struct scan_word){.text = word.text + len, .len = word.len - len};
}

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static size_t n_hex(const char *text, size_t len) {
    size_t n = 0;
    while (n < len && is_hex(text[n])) {
        n++;
    }
    return n;
}

/* "<uuid>" with - or _, or the 32 digits of a static pod. */
static size_t uid_len(const char *text, size_t len) {
    static const size_t dashes[] = {8, 13, 18, 23};
    if (len >= HASH_UID_LEN && n_hex(text, len) == HASH_UID_LEN) {
        return HASH_UID_LEN;
    }
    if (len < UUID_LEN) {
        return 0;
    }
    for (size_t i = 0, dash = 0; i < UUID_LEN; i++) {
        bool at_dash = dash < ARRAY_LEN(dashes) && dashes[dash] == i;
        dash += at_dash ? 1 : 0;
        if (at_dash ? text[i] != '-' && text[i] != '_' : !is_hex(text[i])) {
            return 0;
        }
    }
    return len == UUID_LEN || !is_hex(text[UUID_LEN]) ? UUID_LEN : 0;
}

/* "pod<uid>" or "kubepods-burstable-pod<uid>.slice", which may go on behind a colon. */
static void find_pod(struct scan_word word, struct container_path *path) {
    for (size_t i = 0; i + 3 < word.len; i++) {
        if (memcmp(word.text + i, "pod", 3) != 0 || (i > 0 && word.text[i - 1] != '-')) {
            continue;
        }
        size_t len = uid_len(word.text + i + 3, word.len - i - 3);
        if (len > 0) {
            path->pod_uid = word.text + i + 3;
            path->pod_uid_len = len;
        }
    }
}

static bool take(struct container_path *path, enum container_runtime runtime,
                 struct scan_word name) {
    path->runtime = runtime;
    path->id = name.text;
    path->id_len = name.len;
    return name.len > 0;
}

/* The id at the end of the component, and the text before it. */
static bool split_id(struct scan_word word, struct scan_word *ret_prefix,
                     struct scan_word *ret_id) {
    if (word.len < ID_LEN) {
        return false;
    }
    size_t before = word.len - ID_LEN;
    *ret_prefix = (struct scan_word){.text = word.text, .len = before};
    *ret_id = (struct scan_word){.text = word.text + before, .len = ID_LEN};
    return n_hex(ret_id->text, ID_LEN) == ID_LEN;
}

static enum container_runtime runtime_of_parents(const char *path, size_t len) {
    for (size_t i = 0; i < ARRAY_LEN(parents); i++) {
        size_t parent_len = strlen(parents[i].parent);
        if (len > parent_len + 1 && memcmp(path + 1, parents[i].parent, parent_len) == 0 &&
            path[parent_len + 1] == '/') {
            return parents[i].runtime;
        }
    }
    return CONTAINER_UNKNOWN;
}

static bool take_id(struct container_path *path, const char *text, struct scan_word word) {
    struct scan_word prefix, id;
    if (!split_id(without_suffix(word, ".scope"), &prefix, &id)) {
        return false;
    }
    if (prefix.len == 0) {
        return take(path, runtime_of_parents(text, (size_t)(word.text - text)), id);
    }
    if (ends(prefix, "conmon-")) {
        return false;
    }
    /* containerd that was given a slice but does not know systemd: "<slice>:cri-containerd:<id>" */
    if (ends(prefix, ":cri-containerd:")) {
        return take(path, CONTAINER_CONTAINERD, id);
    }
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (scan_word_equal(prefix, prefixes[i].prefix)) {
            return take(path, prefixes[i].runtime, id);
        }
    }
    char last = prefix.text[prefix.len - 1];
    return (last == '-' || last == ':') && take(path, CONTAINER_UNKNOWN, id);
}

/* Runtimes whose containers have names. `parent` is the component before. */
static bool take_name(struct container_path *path, struct scan_word parent, size_t depth,
                      struct scan_word word) {
    if (begins(word, "lxc.payload.")) {
        return take(path, CONTAINER_LXC, without_prefix(word, "lxc.payload."));
    }
    if (depth == 2 && (scan_word_equal(parent, "lxc") || scan_word_equal(parent, "lxc.payload"))) {
        return take(path, CONTAINER_LXC, word);
    }
    if (depth == 2 && (scan_word_equal(parent, "default") || scan_word_equal(parent, "k8s.io"))) {
        return take(path, CONTAINER_CONTAINERD, word); /* `ctr run`, by its namespace */
    }
    if (!scan_word_equal(parent, "machine.slice")) {
        return false;
    }
    if (begins(word, "systemd-nspawn@") && ends(word, ".service")) {
        return take(path, CONTAINER_NSPAWN,
                    without_prefix(without_suffix(word, ".service"), "systemd-nspawn@"));
    }
    /* libvirt's virtual machines register there too. */
    return begins(word, "machine-") && ends(word, ".scope") && !begins(word, "machine-qemu\\x2d") &&
           take(path, CONTAINER_NSPAWN, without_prefix(without_suffix(word, ".scope"), "machine-"));
}

bool container_path_classify(const char *path, struct container_path *ret_path) {
    struct container_path found = {.path = path};
    struct scan_word parent = {.text = path};
    size_t depth = 0;
    const char *at = path;
    for (;;) {
        at += strspn(at, "/");
        struct scan_word word = {.text = at, .len = strcspn(at, "/\n")};
        if (word.len == 0) {
            return false;
        }
        depth++;
        at += word.len;
        struct container_path before = found;
        find_pod(word, &found);
        if (ends(word, ".mount") || ends(word, ".slice")) {
            parent = word;
            continue;
        }
        bool taken = take_id(&found, path, word);
        if (!taken && take_name(&before, parent, depth, word)) {
            found = before; /* a pod's uid within a name is part of the name */
            taken = true;
        }
        if (taken) {
            found.len = (size_t)(at - path);
            *ret_path = found;
            return true;
        }
        found.in_unit = found.in_unit || ends(word, ".service") || ends(word, ".scope");
        parent = word;
    }
}

/* Lines "4:memory:/docker/<id>" or "0::/docker/<id>". The path may contain colons. */
bool container_id_parse(const char *text, struct container_path *ret_path) {
    for (; *text != '\0'; text = scan_next_line(text)) {
        const char *end = strchrnul(text, '\n');
        const char *colon = memchr(text, ':', (size_t)(end - text));
        colon = colon != NULL ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
        if (colon != NULL && container_path_classify(colon + 1, ret_path)) {
            return true;
        }
    }
    return false;
}

int container_cgroup_of_pid(const char *procfs, pid_t pid, char **ret_path) {
    struct buf name CLEANUP_BUF = {0};
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&name, "%s/%d/cgroup", procfs, (int)pid);
    int r = file_read(buf_str(&name), &text, NULL);
    if (r < 0) {
        return r == -ENOENT ? -ESRCH : r;
    }
    struct container_path path;
    if (!container_id_parse(buf_str(&text), &path)) {
        return -ENOENT;
    }
    *ret_path = mem_strndup(path.path, path.len);
    return 0;
}

struct container_home {
    pid_t pid;
    unsigned round; /* of the latest list that it was in */
    char *path;     /* NULL: in no container */
};

void container_homes_begin(struct container_homes *homes) {
    size_t kept = 0;
    for (size_t i = 0; i < homes->n_rows; i++) {
        if (homes->rows[i].round == homes->round) {
            homes->rows[kept++] = homes->rows[i];
        } else {
            free(homes->rows[i].path);
        }
    }
    homes->n_rows = kept;
    homes->round++;
}

/* The row of the process, or the place for it. */
static size_t place_of(const struct container_homes *homes, pid_t pid) {
    size_t low = 0, high = homes->n_rows;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (homes->rows[middle].pid < pid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const struct container_homes *homes, size_t i, pid_t pid) {
    return i < homes->n_rows && homes->rows[i].pid == pid;
}

const char *container_homes_see(struct container_homes *homes, const char *procfs, pid_t pid) {
    size_t i = place_of(homes, pid);
    if (!is_at(homes, i, pid)) {
        char *path = NULL;
        ARRAY_GROW(&homes->rows, &homes->cap_rows, homes->n_rows + 1);
        memmove(&homes->rows[i + 1], &homes->rows[i], (homes->n_rows - i) * sizeof(*homes->rows));
        homes->n_rows++;
        homes->rows[i] = (struct container_home){
            .pid = pid,
            .path = container_cgroup_of_pid(procfs, pid, &path) == 0 ? path : NULL,
        };
    }
    homes->rows[i].round = homes->round;
    return homes->rows[i].path;
}

const char *container_homes_find(const struct container_homes *homes, pid_t pid) {
    size_t i = place_of(homes, pid);
    return is_at(homes, i, pid) ? homes->rows[i].path : NULL;
}

void container_homes_finish(struct container_homes *homes) {
    for (size_t i = 0; i < homes->n_rows; i++) {
        free(homes->rows[i].path);
    }
    free(homes->rows);
    *homes = (struct container_homes){0};
}

static uid_t owner_of(const char *directory) {
    struct stat info;
    if (stat(directory, &info) < 0 || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return CONTAINER_OWNER_UNKNOWN;
    }
    return info.st_uid;
}

uid_t container_owner(const char *hierarchy, const struct container_path *cgroup) {
    const char *path = cgroup->path;
    const char *end = path + cgroup->len;
    if (!cgroup->in_unit) {
        return 0; /* only root creates cgroups elsewhere */
    }
    /* The kernel does not show the path of a cgroup outside of our cgroup namespace. */
    if (memmem(path, cgroup->len, "/../", strlen("/../")) != NULL) {
        return CONTAINER_OWNER_UNKNOWN;
    }
    for (const char *slash = path; (slash = memchr(slash + 1, '/', (size_t)(end - slash - 1)));) {
        struct buf directory CLEANUP_BUF = {0};
        buf_printf(&directory, "%s%.*s", hierarchy, (int)(slash - path), path);
        uid_t owner = owner_of(buf_str(&directory));
        if (owner != 0) {
            return owner;
        }
    }
    return 0;
}

/* The directory of the hierarchy of a line "4:memory:/…", "1:name=systemd:/…" or "0::/…". */
static void add_hierarchy(struct buf *out, const char *cgroupfs, const char *controllers,
                          size_t len) {
    static const char named[] = "name=";
    bool is_named = len > strlen(named) && memcmp(controllers, named, strlen(named)) == 0;
    size_t skip = is_named ? strlen(named) : 0;
    buf_printf(out, "%s/%.*s", cgroupfs, (int)(len - skip), controllers + skip);
    if (len == 0) {
        size_t root_len = out->len;
        buf_add_str(out, "unified"); /* beside hierarchies of v1 */
        if (access(buf_str(out), F_OK) < 0) {
            buf_truncate(out, root_len);
        }
    }
}

uid_t container_owner_in(const char *cgroupfs, const char *text,
                         const struct container_path *cgroup) {
    const char *line = cgroup->path;
    while (line > text && line[-1] != '\n') {
        line--;
    }
    const char *controllers = strchr(line, ':') + 1;
    struct buf hierarchy CLEANUP_BUF = {0};
    add_hierarchy(&hierarchy, cgroupfs, controllers, (size_t)(cgroup->path - 1 - controllers));
    return container_owner(buf_str(&hierarchy), cgroup);
}
