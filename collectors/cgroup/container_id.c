#include "collectors/cgroup/container_id.h"

#include <errno.h>
#include <string.h>

#include "exporter/core/file.h"

/* Lines "4:memory:/docker/<id>" or "0::/docker/<id>". The path may have colons of its own; it
 * begins at `*ret_start`. */
static bool find(const char *text, const char **ret_start, struct container_path *ret_path) {
    while (*text != '\0') {
        const char *end = strchrnul(text, '\n');
        const char *colon = memchr(text, ':', (size_t)(end - text));
        colon = colon != NULL ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
        if (colon != NULL && container_path_classify(colon + 1, ret_path)) {
            *ret_start = colon + 1;
            return true;
        }
        text = *end == '\n' ? end + 1 : end;
    }
    return false;
}

bool container_id_parse(const char *text, struct container_path *ret_path) {
    const char *start;
    return find(text, &start, ret_path);
}

int container_cgroup_of_pid(const char *procfs, pid_t pid, char **ret_path) {
    struct buf name CLEANUP_BUF = {0};
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&name, "%s/%d/cgroup", procfs, (int)pid);
    if (name.failed) {
        return -ENOMEM;
    }
    int r = file_read(buf_str(&name), &text, NULL);
    if (r < 0) {
        return r == -ENOENT ? -ESRCH : r;
    }
    const char *start;
    struct container_path path;
    if (!find(buf_str(&text), &start, &path)) {
        return -ENOENT;
    }
    char *copy = strndup(start, path.len);
    if (copy == NULL) {
        return -ENOMEM;
    }
    *ret_path = copy;
    return 0;
}
