/* Covers 45 % of collectors/cgroup/container_path.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/cgroup/container_path.h"
#include "exporter/core/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct container_path *path, const char *text, size_t len) {
    assert(path->id >= text && path->id + path->id_len <= text + len);
    assert(path->id_len > 0 && path->len <= len);
    assert(memchr(path->id, '/', path->id_len) == NULL);
    assert(memchr(path->id, '\n', path->id_len) == NULL);
    assert(path->pod_uid == NULL || path->pod_uid + path->pod_uid_len <= path->id);
}

/* The same bytes as a path and as the text of /proc/<pid>/cgroup. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    char *text CLEANUP_FREE = strndup((const char *)data, len);
    if (text == NULL) {
        return 0;
    }
    struct container_path path;
    if (container_path_classify(text, &path)) {
        check(&path, text, strlen(text));
    }
    if (container_id_parse(text, &path)) {
        check(&path, text, strlen(text));
    }
    return 0;
}
