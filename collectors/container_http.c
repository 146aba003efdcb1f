#include "collectors/container_http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"

enum { READ_ROOM = 16384, MAX_HEAD_BYTES = 65536 };

void container_http_init(struct container_http *http) {
    *http = (struct container_http){.fd = -1};
}

void container_http_finish(struct container_http *http) {
    if (http->fd >= 0) {
        close(http->fd);
    }
    buf_finish(&http->request);
    buf_finish(&http->answer);
    container_http_init(http);
}

int container_http_get(struct container_http *http, const char *socket_path, const char *path,
                       int64_t deadline_ns) {
    container_http_finish(http);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(socket_path) >= sizeof(address.sun_path)) {
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, socket_path, strlen(socket_path) + 1);
    int fd CLEANUP_CLOSE = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* A Unix socket connects at once or not at all; EAGAIN says that its queue is full. */
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        return -errno;
    }
    buf_printf(&http->request, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
    if (http->request.failed) {
        return -ENOMEM;
    }
    http->fd = TAKE_FD(fd);
    http->deadline_ns = deadline_ns;
    return 0;
}

static int send_rest(struct container_http *http) {
    while (http->n_sent < http->request.len) {
        ssize_t n = send(http->fd, http->request.data + http->n_sent,
                         http->request.len - http->n_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno == EAGAIN ? 0 : -errno;
        }
        http->n_sent += (size_t)n;
    }
    return 0;
}

/* "HTTP/1.0 200 OK\r\n…\r\n\r\n": takes the status and leaves the body. */
static int cut_head(struct container_http *http) {
    struct buf *answer = &http->answer;
    char *end = answer->len > 0 ? memmem(answer->data, answer->len, "\r\n\r\n", 4) : NULL;
    if (end == NULL) {
        return answer->len > MAX_HEAD_BYTES || http->ended ? -EPROTO : 0;
    }
    if (answer->len < 12 || memcmp(answer->data, "HTTP/1.", 7) != 0 || answer->data[8] != ' ') {
        return -EPROTO;
    }
    http->status = atoi(answer->data + 9);
    size_t head = (size_t)(end + 4 - answer->data);
    memmove(answer->data, answer->data + head, answer->len - head);
    buf_truncate(answer, answer->len - head);
    return http->status > 0 ? 0 : -EPROTO;
}

static int receive(struct container_http *http, size_t max_bytes) {
    while (!http->ended) {
        char *to = buf_reserve(&http->answer, READ_ROOM);
        if (to == NULL) {
            return -ENOMEM;
        }
        ssize_t n = recv(http->fd, to, READ_ROOM, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno == EAGAIN ? 0 : -errno;
        }
        http->ended = n == 0;
        http->answer.len += (size_t)n;
        http->answer.data[http->answer.len] = '\0';
        if (http->answer.len > max_bytes) {
            return -EFBIG;
        }
    }
    return 0;
}

int container_http_step(struct container_http *http, size_t max_bytes, int64_t now_ns) {
    int r = send_rest(http);
    r = r == 0 ? receive(http, max_bytes) : r;
    if (r == 0 && http->status == 0) {
        r = cut_head(http);
    }
    if (r == 0 && !http->ended && now_ns >= http->deadline_ns) {
        r = -ETIMEDOUT;
    }
    return r;
}
