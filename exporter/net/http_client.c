#include "exporter/net/http_client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/net/unix_socket.h"

enum { READ_ROOM = 16384, MAX_HEAD_BYTES = 65536 };

void http_client_finish(struct http_client *client) {
    cleanup_close(&client->fd);
    buf_finish(&client->request);
    buf_finish(&client->answer);
    *client = HTTP_CLIENT_NONE;
}

int http_client_begin(struct http_client *client, const char *socket, const char *method,
                      const char *path, const char *body, int64_t deadline_ns) {
    http_client_finish(client);
    int fd = unix_socket_connect(socket);
    if (fd < 0) {
        return fd;
    }
    client->fd = fd;
    client->deadline_ns = deadline_ns;
    buf_printf(&client->request, "%s %s HTTP/1.0\r\nHost: localhost\r\n", method, path);
    if (body != NULL) {
        buf_add_str(&client->request, "Content-Type: application/json\r\n");
    }
    if (strcmp(method, "GET") != 0) {
        buf_printf(&client->request, "Content-Length: %zu\r\n", body != NULL ? strlen(body) : 0);
    }
    buf_printf(&client->request, "\r\n%s", body != NULL ? body : "");
    return 0;
}

/* "HTTP/1.0 200 OK\r\n…\r\n\r\n": takes the status and leaves the body. */
static int cut_head(struct http_client *client) {
    struct buf *answer = &client->answer;
    char *end = answer->len > 0 ? memmem(answer->data, answer->len, "\r\n\r\n", 4) : NULL;
    if (end == NULL) {
        return answer->len > MAX_HEAD_BYTES || client->ended ? -EPROTO : 0;
    }
    if (answer->len < 12 || memcmp(answer->data, "HTTP/1.", 7) != 0 || answer->data[8] != ' ') {
        return -EPROTO;
    }
    int status = atoi(answer->data + 9);
    size_t head = (size_t)(end + 4 - answer->data);
    memmove(answer->data, answer->data + head, answer->len - head);
    buf_truncate(answer, answer->len - head);
    client->status = status;
    return status >= 100 && status <= 599 ? 0 : -EPROTO;
}

static int receive(struct http_client *client, size_t max_bytes) {
    while (!client->ended) {
        int n = unix_socket_receive(client->fd, READ_ROOM, &client->answer);
        if (n < 0) {
            return n == -EAGAIN ? 0 : n;
        }
        client->ended = n == 0;
        if (client->answer.len > max_bytes) {
            return -EFBIG;
        }
    }
    return 0;
}

int http_client_step(struct http_client *client, size_t max_bytes, int64_t now_ns) {
    int r = unix_socket_send(client->fd, &client->request, &client->n_sent);
    r = r == 0 ? receive(client, max_bytes) : r;
    if (r == 0 && client->status == 0) {
        r = cut_head(client);
    }
    if (r == 0 && !client->ended && now_ns >= client->deadline_ns) {
        r = -ETIMEDOUT;
    }
    return r;
}

int http_client_call(struct http_client *client, const char *socket, const char *method,
                     const char *path, const char *body, size_t max_bytes, int64_t timeout_ms) {
    int64_t deadline_ns = clock_monotonic_ns() + timeout_ms * CLOCK_NS_PER_MS;
    int r = http_client_begin(client, socket, method, path, body, deadline_ns);
    while (r == 0) {
        int64_t now_ns = clock_monotonic_ns();
        r = http_client_step(client, max_bytes, now_ns);
        if (r < 0 || client->ended) {
            break;
        }
        bool sending = client->n_sent < client->request.len;
        struct pollfd fd = {.fd = client->fd,
                            .events = (short)(sending ? POLLIN | POLLOUT : POLLIN)};
        poll(&fd, 1, (int)((deadline_ns - now_ns) / CLOCK_NS_PER_MS) + 1);
    }
    return r;
}
