#pragma once

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A server on a Unix socket. */
struct listener {
    int fd;
    char path[32];
};

/* Its path is a descriptor's: nothing is left in the file system. */
static inline void listener_init(struct listener *listener) {
    char directory[] = "/tmp/fuzz.XXXXXX";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = mkdtemp(directory) != NULL ? 0 : -1;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", directory);
    r = r < 0 ? r : bind(listener->fd, (const struct sockaddr *)&address, sizeof(address));
    r = r < 0 ? r : listen(listener->fd, 1);
    int place = open(address.sun_path, O_PATH | O_CLOEXEC);
    assert(r == 0 && place >= 0);
    snprintf(listener->path, sizeof(listener->path), "/proc/self/fd/%d", place);
    unlink(address.sun_path);
    rmdir(directory);
}

/* The other end of the connection that was just made. */
static inline int listener_accept(const struct listener *listener) {
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert(fd >= 0);
    return fd;
}
