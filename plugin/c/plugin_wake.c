#define _GNU_SOURCE 1
#include "plugin_wake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    atomic_int read_fd, write_fd;
    _Atomic ino_t inode; /* of both ends */
} wake = {.read_fd = -1, .write_fd = -1};

static bool is_ours(int fd) {
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) &&
           st.st_ino == atomic_load(&wake.inode);
}

int waap_wake_open(void) {
    int fds[2];
    struct stat st;
    int known = atomic_load(&wake.read_fd);
    if (is_ours(known) && is_ours(atomic_load(&wake.write_fd))) {
        return known;
    }
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        return -1;
    }
    atomic_store(&wake.inode, fstat(fds[0], &st) == 0 ? st.st_ino : 0);
    atomic_store(&wake.read_fd, fds[0]);
    atomic_store(&wake.write_fd, fds[1]);
    return fds[0];
}

void waap_wake_close(void) {
    int fds[] = {atomic_exchange(&wake.read_fd, -1), atomic_exchange(&wake.write_fd, -1)};
    for (int i = 0; i < 2; i++) {
        if (is_ours(fds[i])) {
            close(fds[i]);
        }
    }
}

void waap_wake_up(void) {
    int error = errno;
    int fd = atomic_load(&wake.write_fd);
    if (is_ours(fd)) {
        /* Where it is full, the thread wakes anyway. */
        ssize_t n = write(fd, "", 1);
        (void)n;
    }
    errno = error;
}

void waap_wake_take(void) {
    char bytes[64];
    int fd = atomic_load(&wake.read_fd);
    while (is_ours(fd) && read(fd, bytes, sizeof(bytes)) > 0) {
    }
}
