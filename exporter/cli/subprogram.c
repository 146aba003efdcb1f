#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/cli/cli.h"
#include "exporter/core/version.h"

enum { EXIT_NO_PROGRAM = 127 };

bool subprogram_path(const char *own_exe, const char *room, const char *program, size_t i,
                     struct buf *out) {
    const char *slash = strrchr(own_exe, '/');
    int dir_len = slash != NULL ? (int)(slash - own_exe) : 0;
    switch (i) {
    case 0:
        buf_printf(out, "%.*s/%s", dir_len, own_exe, program);
        return true;
    case 1:
        buf_printf(out, "%.*s/../%s/%s", dir_len, own_exe, room, program);
        return true;
    case 2:
        buf_printf(out, "%.*s/../libexec/waap/%s", dir_len, own_exe, program);
        return true;
    case 3:
        buf_printf(out, "%s/%s", VERSION_LIBEXECDIR, program);
        return true;
    default:
        return false;
    }
}

int subprogram_exec(const char *room, const char *program, char **argv) {
    char own_exe[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", own_exe, sizeof(own_exe) - 1);
    own_exe[len > 0 ? len : 0] = '\0';
    /* A subprogram that needs another command of ours, such as `waap run`, starts this program. */
    setenv("WAAP_PROGRAM", own_exe, 1);
    struct buf path CLEANUP_BUF = {0};
    for (size_t i = 0; subprogram_path(own_exe, room, program, i, &path); i++) {
        execv(buf_str(&path), argv);
        if (errno != ENOENT && errno != ENOTDIR) {
            fprintf(stderr, "waap: %s: %s\n", buf_str(&path), strerror(errno));
            return EXIT_NO_PROGRAM;
        }
        buf_reset(&path);
    }
    fprintf(stderr, "waap: waap %s needs the package or the image %s\n", argv[0], program);
    return EXIT_NO_PROGRAM;
}
