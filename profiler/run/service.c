#include "profiler/run/session.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "profiler/run/output.h"
#include "profiler/run/process.h"

enum { LOOK_MS = 20, CONNECT_MS = 200, STOP_MS = 2000 };

static bool connects(const struct addrinfo *address) {
    static const struct timeval limit = {.tv_usec = CONNECT_MS * 1000};
    int fd CLEANUP_CLOSE = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0 &&
           connect(fd, address->ai_addr, address->ai_addrlen) == 0;
}

/* Whether a server listens at "8090" (on this machine) or "host:8090". */
static bool listens_at(const char *address) {
    const char *colon = strrchr(address, ':');
    char *host CLEANUP_FREE =
        colon != NULL ? mem_strndup(address, (size_t)(colon - address)) : NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host != NULL ? host : "localhost", colon != NULL ? colon + 1 : address, &hints,
                    &found) != 0) {
        return false;
    }
    bool listens = false;
    for (const struct addrinfo *i = found; i != NULL && !listens; i = i->ai_next) {
        listens = connects(i);
    }
    freeaddrinfo(found);
    return listens;
}

static bool is_ready(const struct run_service *spec) {
    return (spec->ready_tcp == NULL || listens_at(spec->ready_tcp)) &&
           (spec->ready_file == NULL || access(spec->ready_file, F_OK) == 0);
}

static int await_ready(struct run_session *session, const struct run_service *spec,
                       const pid_t *pid, struct error *err) {
    int64_t began_ns = clock_monotonic_ns();
    int64_t limit_ns = began_ns + spec->ready_timeout_ms * CLOCK_NS_PER_MS;
    run_session_wait(session, began_ns + spec->ready_delay_ms * CLOCK_NS_PER_MS,
                     run_session_interrupted);
    for (;;) {
        if (run_session_interrupted(session)) {
            return error_set(err, -EINTR, "service %s: interrupted", spec->name);
        }
        if (is_ready(spec)) {
            return 0;
        }
        if (*pid == 0) {
            return error_set(err, -ECHILD, "service %s: ended before it was ready", spec->name);
        }
        if (clock_monotonic_ns() >= limit_ns) {
            return error_set(err, -ETIMEDOUT, "service %s: not ready after %.1f s", spec->name,
                             (double)spec->ready_timeout_ms / 1e3);
        }
        run_session_wait(session, clock_monotonic_ns() + LOOK_MS * CLOCK_NS_PER_MS, NULL);
    }
}

static int start(struct run_session *session, const char *dir, const struct run_service *spec,
                 pid_t *pid, struct error *err) {
    struct buf name CLEANUP_BUF = {0};
    buf_add_str(&name, "service-");
    run_output_add_name(&name, spec->name);
    int output_fd CLEANUP_CLOSE = run_output_open(session->out_dir, buf_str(&name), err);
    if (output_fd < 0) {
        return output_fd;
    }
    struct run_command command = {
        .argv = spec->command,
        .env = spec->env,
        .dir = dir,
        .output_fd = output_fd,
    };
    int r = run_child_start(&command, pid, err);
    return r < 0 ? r : await_ready(session, spec, pid, err);
}

int run_services_start(struct run_session *session, const char *dir, struct error *err) {
    const struct run_spec *spec = session->spec;
    int r = 0;
    session->services = mem_zalloc(spec->n_services, sizeof(*session->services));
    for (size_t i = 0; r == 0 && i < spec->n_services; i++) {
        r = start(session, dir, &spec->services[i], &session->services[i], err);
    }
    return r;
}

/* Signals the services that run; false if none does. */
static bool signal_all(struct run_session *session, int signal) {
    bool any = false;
    for (size_t i = 0; i < session->spec->n_services; i++) {
        any = any || session->services[i] > 0;
        if (session->services[i] > 0) {
            kill(-session->services[i], signal);
        }
    }
    return any;
}

static bool all_ended(struct run_session *session) {
    return !signal_all(session, 0);
}

void run_services_stop(struct run_session *session) {
    static const int signals[] = {SIGTERM, SIGKILL};
    if (session->services == NULL) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(signals) && signal_all(session, signals[i]); i++) {
        run_session_wait(session, clock_monotonic_ns() + STOP_MS * CLOCK_NS_PER_MS, all_ended);
    }
    free(TAKE(session->services));
}

bool run_services_reaped(struct run_session *session, pid_t pid) {
    for (size_t i = 0; session->services != NULL && i < session->spec->n_services; i++) {
        if (session->services[i] == pid) {
            kill(-pid, SIGKILL); /* and its children */
            session->services[i] = 0;
            return true;
        }
    }
    return false;
}
