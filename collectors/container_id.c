#include "collectors/container_id.h"

#include <errno.h>
#include <string.h>

#include "exporter/core/file.h"

/* Lines "4:memory:/docker/<id>" or "0::/docker/<id>". The path may have colons of its own. */
bool container_id_parse(const char *text, struct container_path *ret_path) {
    while (*text != '\0') {
        const char *end = strchrnul(text, '\n');
        const char *colon = memchr(text, ':', (size_t)(end - text));
        colon = colon != NULL ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
        if (colon != NULL && container_path_classify(colon + 1, ret_path)) {
            return true;
        }
        text = *end == '\n' ? end + 1 : end;
    }
    return false;
}

int container_id_of_pid(const char *procfs, pid_t pid, char **ret_id) {
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
    struct container_path path;
    if (!container_id_parse(buf_str(&text), &path)) {
        return -ENOENT;
    }
    char *id = strndup(path.id, path.id_len);
    if (id == NULL) {
        return -ENOMEM;
    }
    *ret_id = id;
    return 0;
}
