/* To be preloaded: names of hosts and groups that begin with "slow" are not found out while the
 * file $SLOW_NAMES/NAME exists; NAME.reached beside it appears when somebody asks. Such a host is
 * this one, such a group that of the process. */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_slow(const char *name) {
    return name != NULL && strncmp(name, "slow", 4) == 0;
}

static void wait_while_present(const char *name) {
    enum { POLL_USEC = 10000 };
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.reached", getenv("SLOW_NAMES"), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
    }
    *strrchr(path, '.') = '\0';
    while (access(path, F_OK) == 0) {
        usleep(POLL_USEC);
    }
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_infos) {
    int (*ask)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        (typeof(ask))dlsym(RTLD_NEXT, "getaddrinfo");
    if (!is_slow(name)) {
        return ask(name, service, hints, ret_infos);
    }
    wait_while_present(name);
    return ask("127.0.0.1", service, hints, ret_infos);
}

struct group *getgrnam(const char *name) {
    struct group *(*ask)(const char *) = (typeof(ask))dlsym(RTLD_NEXT, "getgrnam");
    if (!is_slow(name)) {
        return ask(name);
    }
    wait_while_present(name);
    return getgrgid(getgid());
}
