#include "exporter/net/listen_passed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_FD = 3 };

static int count(void) {
    const char *pid = getenv("LISTEN_PID");
    const char *fds = getenv("LISTEN_FDS");
    if (pid == NULL || fds == NULL || strtol(pid, NULL, 10) != (long)getpid()) {
        return 0;
    }
    long n = strtol(fds, NULL, 10);
    return n >= 1 && n <= LISTEN_PASSED_MAX ? (int)n : 0;
}

/* The names are separated by colons: "push:waap.socket:waap.socket". */
size_t listen_passed_find(const char *who, int ret_fds[static LISTEN_PASSED_MAX]) {
    const char *names = getenv("LISTEN_FDNAMES");
    const char *name = names != NULL ? names : "";
    bool want_push = strcmp(who, "push") == 0;
    size_t n_found = 0;
    int n = count();
    for (int i = 0; i < n; i++) {
        size_t len = strcspn(name, ":");
        bool is_push = len == strlen("push") && memcmp(name, "push", len) == 0;
        if (is_push == want_push) {
            ret_fds[n_found++] = FIRST_FD + i;
        }
        name += name[len] == ':' ? len + 1 : len;
    }
    return n_found;
}
