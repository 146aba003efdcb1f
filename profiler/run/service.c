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

/* Whether a server listens at "8090" of that host, or at "host:8090". */
static bool listens_at(const char *address, const char *default_host) {
    const char *colon = strrchr(address, ':');
    char *host CLEANUP_FREE =
        colon != NULL ? mem_strndup(address, (size_t)(colon - address)) : mem_strdup(default_host);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, colon != NULL ? colon + 1 : address, &hints, &found) != 0) {
        return false;
    }
    bool listens = false;
    for (const struct addrinfo *i = found; i != NULL && !listens; i = i->ai_next) {
        listens = connects(i);
    }
    freeaddrinfo(found);
    return listens;
}

static bool is_ready(const struct run_service *spec, const char *host) {
    return (spec->ready_tcp == NULL || listens_at(spec->ready_tcp, host)) &&
           (spec->ready_file == NULL || access(spec->ready_file, F_OK) == 0);
}

static bool has_ended(struct run_session *session, const struct run_service_state *service) {
    struct run_container_state state;
    return service->container == NULL
               ? service->pid == 0
               : run_engine_inspect(&session->engine, service->container, &state, NULL) < 0 ||
                     !state.running;
}

static int await_ready(struct run_session *session, const struct run_service *spec,
                       const struct run_service_state *service, const char *host,
                       struct error *err) {
    int64_t began_ns = clock_monotonic_ns();
    int64_t limit_ns = began_ns + spec->ready_timeout_ms * CLOCK_NS_PER_MS;
    run_session_wait(session, began_ns + spec->ready_delay_ms * CLOCK_NS_PER_MS,
                     run_session_interrupted);
    for (;;) {
        if (run_session_interrupted(session)) {
            return error_set(err, -EINTR, "service %s: interrupted", spec->name);
        }
        bool ended = has_ended(session, service);
        if (is_ready(spec, host) && !(ended && service->container != NULL)) {
            return 0;
        }
        if (ended) {
            return error_set(err, -ECHILD,
                             "service %s: ended before it was ready: see its output in %s/output",
                             spec->name, session->out_dir);
        }
        if (clock_monotonic_ns() >= limit_ns) {
            return error_set(err, -ETIMEDOUT, "service %s: not ready after %.1f s", spec->name,
                             (double)spec->ready_timeout_ms / 1e3);
        }
        run_session_wait(session, clock_monotonic_ns() + LOOK_MS * CLOCK_NS_PER_MS, NULL);
    }
}

static int open_output(struct run_session *session, const struct run_service *spec,
                       struct error *err) {
    struct buf name CLEANUP_BUF = {0};
    buf_add_str(&name, "service-");
    run_output_add_name(&name, spec->name);
    return run_output_open(session->out_dir, buf_str(&name), err);
}

static int start_command(struct run_session *session, const char *dir,
                         const struct run_service *spec, pid_t *pid, struct error *err) {
    int output_fd CLEANUP_CLOSE = open_output(session, spec, err);
    struct run_command command = {
        .argv = spec->command,
        .env = spec->env,
        .dir = dir,
        .output_fd = output_fd,
    };
    return output_fd < 0 ? output_fd : run_child_start(&command, pid, err);
}

/* The network of the session, which is created with its first container. */
static int join_network(struct run_session *session, struct error *err) {
    if (session->network != NULL) {
        return 0;
    }
    int r = run_engine_open(&session->engine, session->config->settings, err);
    return r < 0 ? r : run_engine_create_network(&session->engine, &session->network, err);
}

/* Names are resolved by /etc/hosts, which needs no name server of the engine. */
static void add_host(struct run_session *session, const char *name, const char *address) {
    struct buf host CLEANUP_BUF = {0};
    size_t n = 0;
    while (session->hosts[n] != NULL) {
        n++;
    }
    buf_printf(&host, "%s:%s", name, address);
    session->hosts[n] = buf_take(&host);
}

static int start_container(struct run_session *session, const struct run_service *spec, char **id,
                           struct run_container_state *ret_state, struct error *err) {
    struct run_engine *engine = &session->engine;
    struct run_owner owner = run_engine_owner();
    struct run_engine_info info;
    char *digest CLEANUP_FREE = NULL;
    int r = join_network(session, err);
    r = r < 0 ? r : run_engine_image(engine, spec->image, &digest, err);
    if (r < 0) {
        return r;
    }
    run_engine_info(engine, &info);
    struct run_container_spec container = {
        .owner = owner.text,
        .image = spec->image,
        .argv = spec->command,
        .env = spec->env,
        .network = session->network,
        .hosts = (const char *const *)session->hosts,
        .mounts = spec->mounts,
        .init = info.has_init,
    };
    r = run_engine_create(engine, &container, id, err);
    r = r < 0 ? r : run_engine_call(engine, "POST", NULL, err, "/containers/%s/start", *id);
    r = r < 0 ? r : run_engine_inspect(engine, *id, ret_state, err);
    if (r == 0) {
        add_host(session, spec->name, ret_state->address);
    }
    return r;
}

static int start(struct run_session *session, const char *dir, size_t i, struct error *err) {
    const struct run_service *spec = &session->spec->services[i];
    struct run_service_state *service = &session->services[i];
    struct run_container_state state = {.address = "localhost"};
    int r = spec->image != NULL ? start_container(session, spec, &service->container, &state, err)
                                : start_command(session, dir, spec, &service->pid, err);
    if (r < 0) {
        return error_set(err, r, "service %s: %s", spec->name, err->text);
    }
    return await_ready(session, spec, service, state.address, err);
}

int run_services_start(struct run_session *session, const char *dir, struct error *err) {
    const struct run_spec *spec = session->spec;
    int r = 0;
    session->services = mem_zalloc(spec->n_services, sizeof(*session->services));
    session->hosts = mem_zalloc(spec->n_services + 1, sizeof(*session->hosts));
    for (size_t i = 0; r == 0 && i < spec->n_services; i++) {
        r = start(session, dir, i, err);
    }
    return r;
}

/* Signals the services that run as processes; false if none does. */
static bool signal_all(struct run_session *session, int signal) {
    bool any = false;
    for (size_t i = 0; i < session->spec->n_services; i++) {
        pid_t pid = session->services[i].pid;
        any = any || pid > 0;
        if (pid > 0) {
            kill(-pid, signal);
        }
    }
    return any;
}

static bool all_ended(struct run_session *session) {
    return !signal_all(session, 0);
}

static void remove_containers(struct run_session *session) {
    for (size_t i = 0; i < session->spec->n_services; i++) {
        char *id CLEANUP_FREE = session->services[i].container;
        free(session->hosts[i]);
        if (id != NULL) {
            int output_fd CLEANUP_CLOSE = open_output(session, &session->spec->services[i], NULL);
            run_engine_call(&session->engine, "POST", NULL, NULL, "/containers/%s/stop?t=%d", id,
                            STOP_MS / 1000);
            run_engine_copy_output(&session->engine, id, output_fd);
            run_engine_call(&session->engine, "DELETE", NULL, NULL, RUN_ENGINE_REMOVE, id);
        }
    }
    if (session->network != NULL) {
        run_engine_call(&session->engine, "DELETE", NULL, NULL, "/networks/%s", session->network);
        free(TAKE(session->network));
    }
    run_engine_close(&session->engine);
    free(TAKE(session->hosts));
}

void run_services_stop(struct run_session *session) {
    static const int signals[] = {SIGTERM, SIGKILL};
    if (session->services == NULL) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(signals) && signal_all(session, signals[i]); i++) {
        run_session_wait(session, clock_monotonic_ns() + STOP_MS * CLOCK_NS_PER_MS, all_ended);
    }
    remove_containers(session);
    free(TAKE(session->services));
}

bool run_services_reaped(struct run_session *session, pid_t pid) {
    for (size_t i = 0; session->services != NULL && i < session->spec->n_services; i++) {
        if (session->services[i].pid == pid) {
            kill(-pid, SIGKILL); /* and its children */
            session->services[i].pid = 0;
            return true;
        }
    }
    return false;
}
