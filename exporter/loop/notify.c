#include "exporter/loop/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/core/scan.h"

/* A manager that does not read its socket must not stop us for longer. */
enum { SEND_TIMEOUT_MS = 1000, NS_PER_US = 1000 };

struct notify {
    struct loop *loop;
    int fd; /* -1: no manager */
    struct sockaddr_un address;
    socklen_t address_len;
    struct loop_timer alive;
    int64_t alive_every_ns; /* 0: never */
    bool failing;           /* has been logged */
};

/* Does nothing without a manager. */
static void send_text(struct notify *notify, const char *text, int flags) {
    if (notify == NULL || notify->fd < 0) {
        return;
    }
    ssize_t n = sendto(notify->fd, text, strlen(text), flags | MSG_NOSIGNAL,
                       (const struct sockaddr *)&notify->address, notify->address_len);
    if (n < 0 && !notify->failing) {
        log_warn("notify: cannot send to the service manager: %m");
    }
    notify->failing = n < 0;
}

static void alive_fire(struct loop_timer *timer) {
    struct notify *notify = CONTAINER_OF(timer, struct notify, alive);
    timer->due_ns = clock_monotonic_ns() + notify->alive_every_ns;
    send_text(notify, "WATCHDOG=1", MSG_DONTWAIT);
}

/* "/path" or "@name", an abstract socket. */
static bool parse_address(const char *text, struct notify *notify) {
    struct sockaddr_un *address = &notify->address;
    size_t len = text != NULL ? strlen(text) : 0;
    if (len < 2 || len >= sizeof(address->sun_path) || (text[0] != '/' && text[0] != '@')) {
        return false;
    }
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, text, len);
    if (text[0] == '@') {
        address->sun_path[0] = '\0';
    }
    notify->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    return true;
}

/* Half of the period that the manager grants; 0 if it does not watch this process. */
static int64_t read_alive_every_ns(void) {
    const char *pid = getenv("WATCHDOG_PID");
    if (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()) {
        return 0;
    }
    const char *text = getenv("WATCHDOG_USEC");
    uint64_t period_us = 0;
    if (text == NULL || !scan_u64(&text, &period_us) || period_us > INT64_MAX / NS_PER_US) {
        return 0;
    }
    return (int64_t)period_us * NS_PER_US / 2;
}

static int open_socket(void) {
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct timeval timeout = {.tv_sec = SEND_TIMEOUT_MS / 1000};
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    }
    return fd;
}

struct notify *notify_create(struct loop *loop) {
    struct notify *notify = mem_zalloc(1, sizeof(*notify));
    notify->loop = loop;
    notify->fd = -1;
    notify->alive = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = alive_fire};
    loop_timer_add(loop, &notify->alive);
    const char *where = getenv("NOTIFY_SOCKET");
    if (parse_address(where, notify)) {
        notify->fd = open_socket();
        notify->alive_every_ns = read_alive_every_ns();
    } else if (where != NULL && where[0] != '\0') {
        log_warn("notify: NOTIFY_SOCKET: cannot send to %s", where);
    }
    return notify;
}

void notify_destroy(struct notify *notify) {
    if (notify == NULL) {
        return;
    }
    loop_timer_remove(notify->loop, &notify->alive);
    cleanup_close(&notify->fd);
    free(notify);
}

void notify_ready(struct notify *notify, const char *status) {
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "READY=1\nSTATUS=%s", status);
    send_text(notify, buf_str(&text), 0);
    if (notify != NULL && notify->alive_every_ns > 0) {
        notify->alive.due_ns = clock_monotonic_ns();
    }
}

void notify_reloading(struct notify *notify) {
    /* By the time the manager knows which of its reload requests this answers. */
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_monotonic_ns() / NS_PER_US);
    send_text(notify, buf_str(&text), 0);
}

void notify_stopping(struct notify *notify) {
    send_text(notify, "STOPPING=1", 0);
}
