#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the bare system calls of a push cost: waits for a request, takes it, answers "200 OK", and
 * looks at nothing. One connection after the other, at the address it prints. */

static int check(int r, const char *what) {
    if (r < 0) {
        perror(what);
        exit(1);
    }
    return r;
}

static int listen_anywhere(void) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    check(bind(fd, (struct sockaddr *)&address, len), "bind");
    check(listen(fd, 1), "listen");
    check(getsockname(fd, (struct sockaddr *)&address, &len), "getsockname");
    printf("http://127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void answer_all(int connection) {
    static const char answer[] = "HTTP/1.1 200 OK\r\n"
                                 "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
                                 "Connection: Keep-Alive\r\n"
                                 "Content-Length: 0\r\n"
                                 "\r\n";
    static char request[8192];
    int epoll = check(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    struct epoll_event event = {.events = EPOLLIN};
    check(epoll_ctl(epoll, EPOLL_CTL_ADD, connection, &event), "epoll_ctl");
    while (epoll_wait(epoll, &event, 1, -1) == 1 &&
           recv(connection, request, sizeof(request), 0) > 0 &&
           send(connection, answer, sizeof(answer) - 1, MSG_NOSIGNAL) > 0) {
    }
    close(epoll);
}

int main(void) {
    int listener = listen_anywhere();
    for (;;) {
        int connection = check(accept(listener, NULL, NULL), "accept");
        answer_all(connection);
        close(connection);
    }
}
