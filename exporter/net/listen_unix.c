#include "exporter/net/listen_unix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"

/* The group that the socket is to have; (gid_t)-1, "leave it", where none is named. */
static int find_group(const struct http_listen_config *config, gid_t *ret_gid, struct error *err) {
    const char *name = config->group;
    *ret_gid = (gid_t)-1;
    if (name[0] != '\0' && listen_names_group(config->names, name, ret_gid) < 0) {
        return error_set(err, -EINVAL, "%s: there is no group \"%s\"", config->group_option, name);
    }
    return 0;
}

static int permit(const char *path, const struct http_listen_config *config, struct error *err) {
    gid_t gid = (gid_t)-1;
    int r = find_group(config, &gid, err);
    if (r < 0) {
        return r;
    }
    mode_t mode = (mode_t)strtoul(config->mode, NULL, 8);
    if (chown(path, (uid_t)-1, gid) < 0 || chmod(path, mode) < 0) {
        return error_set(err, -errno, "listen on unix:%s: %m", path);
    }
    return 0;
}

/* ---- what stands there already ---- */

static const char *name_of_kind(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFDIR: /* Docker makes one where the source of a bind mount is missing */
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

/* Words why bind() has failed. */
static int fail_to_bind(const char *path, struct error *err) {
    int code = -errno;
    struct stat st;
    if (code != -EADDRINUSE || lstat(path, &st) < 0) {
        errno = -code;
        return error_set(err, code, "listen on unix:%s: %m", path);
    }
    return error_set(err, code,
                     "listen on unix:%s: %s stands there and is left alone: remove it, or choose "
                     "another path",
                     path, name_of_kind(st.st_mode));
}

/* Removes a socket that nobody answers on: a process that died left it behind. */
static int clear_way(int fd, const struct sockaddr_un *name, struct error *err) {
    if (connect(fd, (const struct sockaddr *)name, sizeof(*name)) == 0 || errno == EAGAIN) {
        return error_set(err, -EADDRINUSE, "listen on unix:%s: somebody listens there",
                         name->sun_path);
    }
    struct stat st;
    if (errno == ECONNREFUSED && lstat(name->sun_path, &st) == 0 && S_ISSOCK(st.st_mode)) {
        unlink(name->sun_path);
    }
    return 0;
}

/* ---- life ---- */

bool listen_unix_is_there(const struct listen_unix *socket) {
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
    int r = clear_way(fd, &name, err);
    if (r == 0 && bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0) {
        r = fail_to_bind(path, err);
    }
    return r < 0 ? r : TAKE_FD(fd);
}

int listen_unix_open(const char *path, int backlog, const struct http_listen_config *config,
                     struct listen_unix *ret_socket, struct error *err) {
    int fd CLEANUP_CLOSE = bind_socket(path, err);
    if (fd < 0) {
        return fd;
    }
    /* Nobody can connect before it listens, and by then its permissions are right. */
    struct stat st;
    char *copy CLEANUP_FREE = strdup(path);
    int r = permit(path, config, err);
    if (r == 0 && (copy == NULL || lstat(path, &st) < 0 || listen(fd, backlog) < 0)) {
        r = error_set(err, -errno, "listen on unix:%s: %m", path);
    }
    if (r < 0) {
        unlink(path);
        return r;
    }
    *ret_socket = (struct listen_unix){.path = TAKE(copy), .device = st.st_dev, .inode = st.st_ino};
    return TAKE_FD(fd);
}

int listen_unix_permit(const struct listen_unix *socket, const struct http_listen_config *config,
                       struct error *err) {
    return listen_unix_is_there(socket) ? permit(socket->path, config, err) : 0;
}

void listen_unix_finish(struct listen_unix *socket) {
    if (listen_unix_is_there(socket)) {
        unlink(socket->path);
    }
    free(TAKE(socket->path));
}
