/* Covers 15 % of collectors/host/filesystem.c. */
#include "collectors/host/parse.h"
#include "tests/fuzz/lines.h"

static void check(const struct host_mount_line *parsed, const char *line) {
    check_word(parsed->key, line);
    check_word(parsed->device, line);
    check_word(parsed->mount_point, line);
    check_word(parsed->type, line);
    char *path CLEANUP_FREE = host_mount_unescape(parsed->mount_point);
    assert(strlen(path) <= parsed->mount_point.len);
    const char *stripped = host_mount_strip(path, "/host/");
    assert(strlen(stripped) <= strlen(path));
}

FUZZ_LINES(host_mount_parse, struct host_mount_line)
