#define _GNU_SOURCE 1
#include "plugin_wake.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sockets, not a pipe: writing to a pipe whose other end is closed raises SIGPIPE. */
struct end {
    atomic_int fd; /* -1: none */
    _Atomic ino_t inode;
};

static struct end read_end = {.fd = -1}, write_end = {.fd = -1};

/* The descriptor of an end, -1 where it is not ours any more. */
static int end_fd(struct end *end) {
    struct stat st;
    int fd = atomic_load(&end->fd);
    bool ours = fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
                st.st_ino == atomic_load(&end->inode);
    return ours ? fd : -1;
}

static void end_close(struct end *end) {
    int fd = end_fd(end);
    atomic_store(&end->fd, -1);
    if (fd >= 0) {
        close(fd);
    }
}

static void end_set(struct end *end, int fd) {
    struct stat st;
    atomic_store(&end->inode, fstat(fd, &st) == 0 ? st.st_ino : 0);
    atomic_store(&end->fd, fd);
}

int waap_wake_open(void) {
    int fds[2];
    int known = end_fd(&read_end);
    if (known >= 0 && end_fd(&write_end) >= 0) {
        return known;
    }
    waap_wake_close();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0) {
        return -1;
    }
    end_set(&read_end, fds[0]);
    end_set(&write_end, fds[1]);
    return fds[0];
}

void waap_wake_close(void) {
    end_close(&read_end);
    end_close(&write_end);
}

void waap_wake_up(void) {
    int error = errno;
    int fd = end_fd(&write_end);
    if (fd >= 0) {
        /* Where it is full, the thread wakes anyway. */
        ssize_t n = send(fd, "", 1, MSG_NOSIGNAL);
        (void)n;
    }
    errno = error;
}

void waap_wake_take(void) {
    char bytes[64];
    int fd = end_fd(&read_end);
    while (fd >= 0 && recv(fd, bytes, sizeof(bytes), 0) == sizeof(bytes)) {
    }
}
