#include "collectors/container/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/net/unix_socket.h"

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
    int fd CLEANUP_CLOSE = unix_socket_connect(socket_path);
    if (fd < 0) {
        return fd;
    }
    buf_printf(&http->request, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
    if (http->request.failed) {
        return -ENOMEM;
    }
    http->fd = TAKE_FD(fd);
    http->deadline_ns = deadline_ns;
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
        int n = unix_socket_receive(http->fd, READ_ROOM, &http->answer);
        if (n < 0) {
            return n == -EAGAIN ? 0 : n;
        }
        http->ended = n == 0;
        if (http->answer.len > max_bytes) {
            return -EFBIG;
        }
    }
    return 0;
}

int container_http_step(struct container_http *http, size_t max_bytes, int64_t now_ns) {
    int r = unix_socket_send(http->fd, &http->request, &http->n_sent);
    r = r == 0 ? receive(http, max_bytes) : r;
    if (r == 0 && http->status == 0) {
        r = cut_head(http);
    }
    if (r == 0 && !http->ended && now_ns >= http->deadline_ns) {
        r = -ETIMEDOUT;
    }
    return r;
}
