#define _GNU_SOURCE 1
#include "plugin_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The longest line that is understood, and what is read before others have their turn. */
enum { MAX_LINE = 64 * 1024 };

int waap_link_open(struct waap_link *link, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len >= sizeof(address.sun_path)) {
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, len + 1);
    link->in = link->in != NULL ? link->in : malloc(MAX_LINE);
    if (link->in == NULL) {
        return -ENOMEM;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    struct stat st;
    link->inode = fstat(fd, &st) == 0 ? st.st_ino : 0;
    link->fd = fd;
    return 0;
}

bool waap_link_check(struct waap_link *link) {
    struct stat st;
    bool ours = fstat(link->fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == link->inode;
    if (!ours) {
        link->fd = -1;
    }
    return ours;
}

void waap_link_close(struct waap_link *link) {
    if (link->fd >= 0 && waap_link_check(link)) {
        close(link->fd);
    }
    link->fd = -1;
    link->in_len = 0;
    link->n_sent = 0;
    waap_text_finish(&link->out);
}

void waap_link_finish(struct waap_link *link) {
    waap_link_close(link);
    free(link->in);
    link->in = NULL;
}

bool waap_link_full(const struct waap_link *link) {
    return link->n_sent < link->out.len;
}

int waap_link_send(struct waap_link *link) {
    while (waap_link_full(link)) {
        ssize_t n = send(link->fd, link->out.data + link->n_sent, link->out.len - link->n_sent,
                         MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno == EAGAIN ? 0 : -errno;
        }
        link->n_sent += (size_t)n;
    }
    link->n_sent = 0;
    link->out.len = 0;
    return 0;
}

/* Hands over the complete lines and keeps the rest for later. */
static int split_lines(struct waap_link *link, void (*take)(char *line)) {
    char *line = link->in;
    char *end = link->in + link->in_len;
    for (;;) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        if (newline == NULL) {
            break;
        }
        *newline = '\0';
        take(line);
        line = newline + 1;
    }
    link->in_len = (size_t)(end - line);
    memmove(link->in, line, link->in_len);
    return link->in_len < MAX_LINE ? 0 : -EMSGSIZE;
}

int waap_link_receive(struct waap_link *link, void (*take)(char *line)) {
    ssize_t n = recv(link->fd, link->in + link->in_len, MAX_LINE - link->in_len, 0);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    }
    if (n == 0) {
        return -EPIPE;
    }
    link->in_len += (size_t)n;
    return split_lines(link, take);
}
