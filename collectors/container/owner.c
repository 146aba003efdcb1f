#include "collectors/container/owner.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/buf.h"

static uid_t owner_of(const char *directory) {
    struct stat info;
    if (stat(directory, &info) < 0 || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return CONTAINER_OWNER_UNKNOWN;
    }
    return info.st_uid;
}

uid_t container_owner(const char *hierarchy, const char *path,
                      const struct container_path *classified) {
    if (!classified->in_unit) {
        return 0; /* only root makes cgroups elsewhere */
    }
    /* Of a cgroup outside of our cgroup namespace the kernel shows no name. */
    if (memmem(path, classified->len, "/../", strlen("/../")) != NULL) {
        return CONTAINER_OWNER_UNKNOWN;
    }
    const char *end = path + classified->len;
    for (const char *slash = path; (slash = memchr(slash + 1, '/', (size_t)(end - slash - 1)));) {
        struct buf directory CLEANUP_BUF = {0};
        buf_printf(&directory, "%s%.*s", hierarchy, (int)(slash - path), path);
        uid_t owner = directory.failed ? CONTAINER_OWNER_UNKNOWN : owner_of(buf_str(&directory));
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
        if (!out->failed && access(buf_str(out), F_OK) < 0) {
            buf_truncate(out, root_len);
        }
    }
}

uid_t container_owner_in(const char *cgroupfs, const char *text,
                         const struct container_path *classified) {
    const char *line = classified->id;
    while (line > text && line[-1] != '\n') {
        line--;
    }
    const char *controllers = strchr(line, ':');
    const char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    struct buf hierarchy CLEANUP_BUF = {0};
    if (path == NULL) {
        return CONTAINER_OWNER_UNKNOWN;
    }
    add_hierarchy(&hierarchy, cgroupfs, controllers + 1, (size_t)(path - controllers - 1));
    return hierarchy.failed ? CONTAINER_OWNER_UNKNOWN
                            : container_owner(buf_str(&hierarchy), path + 1, classified);
}
