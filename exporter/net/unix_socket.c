#include "exporter/net/unix_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "exporter/core/cleanup.h"

int unix_socket_connect(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd CLEANUP_CLOSE = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* A Unix socket connects at once or not at all; EAGAIN means that its queue is full. */
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        return -errno;
    }
    return TAKE_FD(fd);
}

int unix_socket_send(int fd, const struct buf *out, size_t *n_sent) {
    while (*n_sent < out->len) {
        ssize_t n = send(fd, out->data + *n_sent, out->len - *n_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno == EAGAIN ? 0 : -errno;
        }
        *n_sent += (size_t)n;
    }
    return 0;
}

int unix_socket_receive(int fd, size_t room, struct buf *in) {
    char *to = buf_reserve(in, room);
    ssize_t n;
    do {
        n = recv(fd, to, room, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return -errno;
    }
    in->len += (size_t)n;
    in->data[in->len] = '\0';
    return (int)n;
}
