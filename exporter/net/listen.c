#include "exporter/net/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/net/address.h"

/* A burst beyond the backlog loses connection requests, and a scrape among them waits a second for
 * its next try. */
enum { LISTEN_BACKLOG = 4096 };

enum { LISTEN_FIRST_FD = 3 }; /* of systemd */

/* Connections that are accepted on one turn, so that the others get their turn too; the gate keeps
 * room for as many newcomers until their requests are read (a quarter of max-connections). */
enum { ACCEPT_BATCH = 16 };

/* How long a listener rests when the process is out of descriptors. */
#define ACCEPT_REST_NS (100 * CLOCK_NS_PER_MS)

/* A Unix socket that we listen on, in the file system. */
struct listen_unix {
    char *path; /* NULL: none */
    dev_t device;
    ino_t inode;
};

struct listener {
    struct loop_source source;
    struct loop_timer rest;
    struct http_listeners *owner;
    char *text; /* the setting it came from */
    struct listen_unix unix_socket;
    bool keep;
    bool resting;
    bool starved; /* that it cannot accept was logged */
    struct listener *next;
};

struct http_listeners {
    struct loop *loop;
    http_accept_function *accepted;
    void *context;
    const char *name;
    struct listener *first;
};

/* ---- sockets of systemd ---- */

static int count_passed(void) {
    const char *pid = getenv("LISTEN_PID");
    const char *fds = getenv("LISTEN_FDS");
    if (pid == NULL || fds == NULL || strtol(pid, NULL, 10) != (long)getpid()) {
        return 0;
    }
    long n = strtol(fds, NULL, 10);
    return n >= 1 && n <= LISTEN_PASSED_MAX ? (int)n : 0;
}

/* The names are separated by colons: "push:waap.socket:waap.socket". */
size_t listen_passed_find(const char *user, int ret_fds[static LISTEN_PASSED_MAX]) {
    const char *names = getenv("LISTEN_FDNAMES");
    const char *name = names != NULL ? names : "";
    bool want_push = strcmp(user, "push") == 0;
    size_t n_found = 0;
    int n = count_passed();
    for (int i = 0; i < n; i++) {
        size_t len = strcspn(name, ":");
        bool is_push = len == strlen("push") && memcmp(name, "push", len) == 0;
        if (is_push == want_push) {
            ret_fds[n_found++] = LISTEN_FIRST_FD + i;
        }
        name += name[len] == ':' ? len + 1 : len;
    }
    return n_found;
}

/* ---- Unix sockets ---- */

/* Sets the mode and group of the configuration. */
static int permit(const char *path, const struct http_listen_config *config, struct error *err) {
    gid_t gid = (gid_t)-1; /* chown leaves it */
    if (config->group[0] != '\0' && listen_names_group(config->names, config->group, &gid) < 0) {
        return error_set(err, -EINVAL, "%s: there is no group \"%s\"", config->group_option,
                         config->group);
    }
    mode_t mode = (mode_t)strtoul(config->mode, NULL, 8);
    if (chown(path, (uid_t)-1, gid) < 0 || chmod(path, mode) < 0) {
        return error_set(err, -errno, "listen on unix:%s: %m", path);
    }
    return 0;
}

static const char *name_of_kind(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFDIR: /* Docker makes one if the source of a bind mount is missing */
        return "a directory";
    case S_IFLNK:
        return "a symbolic link";
    case S_IFREG:
        return "a regular file";
    case S_IFSOCK:
        return "a socket of another kind, or of another user";
    default:
        return "a device or pipe";
    }
}

/* Describes why bind() failed. */
static int fail_to_bind(const char *path, struct error *err) {
    int code = -errno;
    struct stat st;
    if (code != -EADDRINUSE || lstat(path, &st) < 0) {
        errno = -code;
        return error_set(err, code, "listen on unix:%s: %m", path);
    }
    return error_set(err, code,
                     "listen on unix:%s: %s is there and is left alone: remove it, or choose "
                     "another path",
                     path, name_of_kind(st.st_mode));
}

/* Removes a socket without a listener, which a process that died has left. */
static int remove_stale(int fd, const struct sockaddr_un *name, struct error *err) {
    if (connect(fd, (const struct sockaddr *)name, sizeof(*name)) == 0 || errno == EAGAIN) {
        return error_set(err, -EADDRINUSE, "listen on unix:%s: another process listens there",
                         name->sun_path);
    }
    struct stat st;
    if (errno == ECONNREFUSED && lstat(name->sun_path, &st) == 0 && S_ISSOCK(st.st_mode)) {
        unlink(name->sun_path);
    }
    return 0;
}

/* Whether the socket is still at its path: otherwise no client can connect. */
static bool listen_unix_is_there(const struct listen_unix *socket) {
    struct stat st;
    return socket->path != NULL && lstat(socket->path, &st) == 0 && S_ISSOCK(st.st_mode) &&
           st.st_dev == socket->device && st.st_ino == socket->inode;
}

static int bind_socket(const char *path, struct error *err) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strcpy(name.sun_path, path);
    int fd CLEANUP_CLOSE = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return error_set(err, -errno, "listen on unix:%s: %m", path);
    }
    int r = remove_stale(fd, &name, err);
    if (r == 0 && bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0) {
        r = fail_to_bind(path, err);
    }
    return r < 0 ? r : TAKE_FD(fd);
}

/* Listens on the path, which sockaddr_un can hold, with the mode and group of the configuration. A
 * socket without a listener is replaced; anything else there is left alone. Returns the
 * descriptor. */
static int listen_unix_open(const char *path, const struct http_listen_config *config,
                            struct listen_unix *ret_socket, struct error *err) {
    int fd CLEANUP_CLOSE = bind_socket(path, err);
    if (fd < 0) {
        return fd;
    }
    /* Nobody can connect before it listens, and by then its permissions are right. */
    struct stat st;
    int r = permit(path, config, err);
    if (r == 0 && (lstat(path, &st) < 0 || listen(fd, LISTEN_BACKLOG) < 0)) {
        r = error_set(err, -errno, "listen on unix:%s: %m", path);
    }
    if (r < 0) {
        unlink(path);
        return r;
    }
    *ret_socket =
        (struct listen_unix){.path = mem_strdup(path), .device = st.st_dev, .inode = st.st_ino};
    return TAKE_FD(fd);
}

/* Removes it, unless something else has taken its place. */
static void listen_unix_finish(struct listen_unix *socket) {
    if (listen_unix_is_there(socket)) {
        unlink(socket->path);
    }
    free(TAKE(socket->path));
}

/* ---- TCP ---- */

static int open_one(const struct addrinfo *info, const char *text, struct error *err) {
    int fd CLEANUP_CLOSE =
        socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, info->ai_protocol);
    if (fd < 0) {
        return error_set(err, -errno, "listen on %s: %m", text);
    }
    int on = 1;
    int off = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (info->ai_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if (bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
        return error_set(err, -errno, "listen on %s: %m", text);
    }
    return TAKE_FD(fd);
}

static int open_tcp(const struct http_address *address, const struct http_listen_config *config,
                    const char *text, struct error *err) {
    const struct addrinfo *infos;
    int r = listen_names_host(config->names, text, &infos, err);
    if (r < 0) {
        return r;
    }
    bool all = address->host[0] == '\0';
    /* For "all addresses" IPv6 takes IPv4 along; if it is switched off, IPv4 alone follows. */
    int fd = -EADDRNOTAVAIL;
    for (int pass = 0; pass < 2 && fd < 0 && fd != -EADDRINUSE; pass++) {
        for (const struct addrinfo *info = infos; info != NULL; info = info->ai_next) {
            bool wanted = !all || (info->ai_family == AF_INET6) == (pass == 0);
            if (wanted && fd < 0 && fd != -EADDRINUSE) {
                fd = open_one(info, text, err);
            }
        }
    }
    return fd;
}

static void describe(int fd, const char *text, char *out, size_t size) {
    struct sockaddr_storage name = {0};
    socklen_t len = sizeof(name);
    char host[64];
    char port[8];
    if (getsockname(fd, (struct sockaddr *)&name, &len) < 0 || name.ss_family == AF_UNIX ||
        getnameinfo((struct sockaddr *)&name, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        snprintf(out, size, "%s", text);
        return;
    }
    snprintf(out, size, name.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* ---- listeners ---- */

static void listener_rest_over(struct loop_timer *timer) {
    struct listener *listener = CONTAINER_OF(timer, struct listener, rest);
    if (loop_add(listener->owner->loop, &listener->source, EPOLLIN, NULL) == 0) {
        listener->resting = false;
    } else {
        timer->due_ns = clock_monotonic_ns() + ACCEPT_REST_NS;
    }
}

static void listener_ready(struct loop_source *source, uint32_t events) {
    (void)events;
    struct listener *listener = CONTAINER_OF(source, struct listener, source);
    struct http_listeners *owner = listener->owner;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            listener->starved = false;
            owner->accepted(fd, owner->context);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            if (!listener->starved) {
                log_warn("%s: accept on %s: %m", owner->name, listener->text);
            }
            listener->starved = true;
            loop_remove(owner->loop, source);
            listener->resting = true;
            listener->rest.due_ns = clock_monotonic_ns() + ACCEPT_REST_NS;
            return;
        }
        if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void listener_destroy(struct listener *listener) {
    struct loop *loop = listener->owner->loop;
    if (!listener->resting) {
        loop_remove(loop, &listener->source);
    }
    loop_timer_remove(loop, &listener->rest);
    close(listener->source.fd);
    listen_unix_finish(&listener->unix_socket);
    free(listener->text);
    free(listener);
}

/* Watches `fd`, which becomes the listener's, as does the socket in the file system. */
static int listener_add(struct http_listeners *owner, int fd, const char *text,
                        struct listen_unix *unix_socket, struct error *err) {
    struct listener *listener = mem_zalloc(1, sizeof(*listener));
    *listener = (struct listener){
        .source = {.fd = fd, .ready = listener_ready},
        .rest = {.due_ns = LOOP_NEVER, .fire = listener_rest_over},
        .owner = owner,
        .text = mem_strdup(text),
        .unix_socket = *unix_socket,
        .keep = true,
        .next = owner->first,
    };
    loop_timer_add(owner->loop, &listener->rest);
    int r = loop_add(owner->loop, &listener->source, EPOLLIN, err);
    if (r < 0) {
        listener_destroy(listener);
        return r;
    }
    owner->first = listener;
    char where[128];
    describe(fd, text, where, sizeof(where));
    log_info("%s: listening on %s", owner->name, where);
    return 0;
}

static bool is_there(const struct listener *listener) {
    return listener->unix_socket.path == NULL || listen_unix_is_there(&listener->unix_socket);
}

bool http_listeners_are_there(const struct http_listeners *listeners) {
    const struct listener *listener = listeners->first;
    while (listener != NULL && is_there(listener)) {
        listener = listener->next;
    }
    return listener == NULL;
}

static struct listener *find(struct http_listeners *listeners, const char *text) {
    struct listener *listener = listeners->first;
    while (listener != NULL && strcmp(listener->text, text) != 0) {
        listener = listener->next;
    }
    return listener;
}

static int add_address(struct http_listeners *listeners, const struct http_listen_config *config,
                       const char *text, struct error *err) {
    struct listener *old = find(listeners, text);
    if (old != NULL && is_there(old)) {
        old->keep = true;
        const char *path = old->unix_socket.path;
        return path != NULL ? permit(path, config, err) : 0;
    }
    struct http_address address;
    int r = http_address_parse(text, &address, err);
    if (r < 0) {
        return r;
    }
    struct listen_unix unix_socket = {0};
    int fd = address.is_unix ? listen_unix_open(address.path, config, &unix_socket, err)
                             : open_tcp(&address, config, text, err);
    return fd < 0 ? fd : listener_add(listeners, fd, text, &unix_socket, err);
}

/* A copy of a socket of systemd, so that the original is still there if a reload leaves it and the
 * next one returns to it. */
static int copy_passed(int fd, struct error *err) {
    int listening = 0;
    socklen_t len = sizeof(listening);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) < 0 || !listening) {
        return error_set(err, -EINVAL, "descriptor %d of systemd is not a listening socket", fd);
    }
    int copy CLEANUP_CLOSE = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (copy < 0 || fcntl(copy, F_SETFL, O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        return error_set(err, -errno, "descriptor %d of systemd: %m", fd);
    }
    return TAKE_FD(copy);
}

static int add_passed(struct http_listeners *listeners, struct error *err) {
    int fds[LISTEN_PASSED_MAX];
    size_t n = listen_passed_find(listeners->name, fds);
    if (n == 0) {
        return error_set(err, -EINVAL,
                         "--web.systemd-socket: no sockets were handed over (LISTEN_FDS)");
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        char text[32];
        snprintf(text, sizeof(text), "systemd:%d", fds[i]);
        struct listener *old = find(listeners, text);
        if (old != NULL) {
            old->keep = true;
            continue;
        }
        int copy = copy_passed(fds[i], err);
        r = copy < 0 ? copy : listener_add(listeners, copy, text, &(struct listen_unix){0}, err);
    }
    return r;
}

static void set_keep(struct listener *from, const struct listener *to, bool keep) {
    for (struct listener *listener = from; listener != to; listener = listener->next) {
        listener->keep = keep;
    }
}

/* Closes the listeners whose `keep` is as given. */
static void close_where(struct http_listeners *listeners, bool keep) {
    for (struct listener **link = &listeners->first; *link != NULL;) {
        struct listener *listener = *link;
        if (listener->keep == keep) {
            *link = listener->next;
            listener_destroy(listener);
        } else {
            link = &listener->next;
        }
    }
}

int http_listeners_listen(struct http_listeners *listeners, const struct http_listen_config *config,
                          struct error *err) {
    struct listener *before = listeners->first;
    set_keep(before, NULL, false);
    listeners->name = config->name;
    int r = config->passed ? add_passed(listeners, err) : 0;
    for (size_t i = 0; r == 0 && !config->passed && config->addresses[i] != NULL; i++) {
        r = add_address(listeners, config, config->addresses[i], err);
    }
    if (r < 0) { /* undo: listeners that were added come before `before` in the list */
        set_keep(listeners->first, before, false);
        set_keep(before, NULL, true);
    }
    close_where(listeners, false);
    return r;
}

struct http_listeners *http_listeners_create(struct loop *loop, http_accept_function *accepted,
                                             void *context) {
    struct http_listeners *listeners = mem_zalloc(1, sizeof(*listeners));
    *listeners = (struct http_listeners){.loop = loop, .accepted = accepted, .context = context};
    return listeners;
}

void http_listeners_destroy(struct http_listeners *listeners) {
    if (listeners == NULL) {
        return;
    }
    close_where(listeners, false);
    close_where(listeners, true);
    free(listeners);
}
