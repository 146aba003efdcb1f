/* To be preloaded: names of hosts and groups that begin with "slow" take a while to find out. Such
 * a host is this one, such a group that of the process. */
#include <dlfcn.h>
#include <grp.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

enum { DELAY_S = 1 };

static int is_slow(const char *name) {
    return name != NULL && strncmp(name, "slow", 4) == 0;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_infos) {
    int (*ask)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        (typeof(ask))dlsym(RTLD_NEXT, "getaddrinfo");
    if (!is_slow(name)) {
        return ask(name, service, hints, ret_infos);
    }
    sleep(DELAY_S);
    return ask("127.0.0.1", service, hints, ret_infos);
}

struct group *getgrnam(const char *name) {
    struct group *(*ask)(const char *) = (typeof(ask))dlsym(RTLD_NEXT, "getgrnam");
    if (!is_slow(name)) {
        return ask(name);
    }
    sleep(DELAY_S);
    return getgrgid(getgid());
}
