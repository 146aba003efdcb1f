#include "exporter/http/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/http/tls.h"

enum {
    MHD_NO_LIMIT = 1 << 20,  /* the gate decides: libmicrohttpd would reject new connections */
    FDS_KEPT = 128,          /* for everything but connections */
    LOOK_MS = 500,           /* libmicrohttpd has processed what the client sent by then */
    MIN_BODY_RATE = 4 << 10, /* bytes per second; the slowest mobile link is faster */
};

/* ---- libmicrohttpd on our loop ---- */

static int64_t port_timeout_ms(struct loop_pump *pump) {
    struct http_port *port = CONTAINER_OF(pump, struct http_port, pump);
    MHD_UNSIGNED_LONG_LONG left_ms;
    if (MHD_get_timeout(port->mhd, &left_ms) != MHD_YES) {
        return -1;
    }
    return left_ms > INT32_MAX ? INT32_MAX : (int64_t)left_ms;
}

static void port_run(struct loop_pump *pump) {
    struct http_port *port = CONTAINER_OF(pump, struct http_port, pump);
    MHD_run(port->mhd);
}

static void port_ready(struct loop_source *source, uint32_t events) {
    (void)source;
    (void)events; /* the pump runs after every turn */
}

static void mhd_log(void *context, const char *format, va_list args) {
    (void)context;
    if (!log_enabled(LOG_LEVEL_DEBUG)) {
        return;
    }
    char text[512];
    vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';
    log_debug("http: libmicrohttpd: %s", text);
}

static void client_changed(void *context, struct MHD_Connection *connection, void **client_slot,
                           enum MHD_ConnectionNotificationCode code);

static unsigned idle_timeout_s(const struct settings *settings) {
    return (unsigned)((settings_duration_ms(settings, "web.idle-timeout") + 999) / 1000);
}

static int port_open(struct http_server *server, struct http_port *port, bool tls,
                     const struct settings *settings, struct error *err) {
    size_t pool_size = (size_t)settings_int(settings, "web.max-header-size");
    unsigned flags =
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls_options[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)tls_no_certificate},
        {MHD_OPTION_END, 0, NULL},
    };
    port->mhd = MHD_start_daemon(
        tls ? flags | MHD_USE_TLS : flags, 0, NULL, NULL, http_request_step, server,
        MHD_OPTION_EXTERNAL_LOGGER, mhd_log, NULL, MHD_OPTION_NOTIFY_CONNECTION, client_changed,
        server, MHD_OPTION_NOTIFY_COMPLETED, http_request_completed, server,
        MHD_OPTION_URI_LOG_CALLBACK, http_request_begin, server, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)MHD_NO_LIMIT, MHD_OPTION_CONNECTION_MEMORY_LIMIT, pool_size,
        MHD_OPTION_CONNECTION_TIMEOUT, idle_timeout_s(settings), MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_ARRAY, tls ? tls_options : tls_options + 1, MHD_OPTION_END);
    if (port->mhd == NULL) {
        return error_set(err, -EIO, "http: cannot start libmicrohttpd%s", tls ? " with TLS" : "");
    }
    if (server->pool_size == 0 || pool_size < server->pool_size) {
        server->pool_size = pool_size;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(port->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    port->source = (struct loop_source){.fd = info->epoll_fd, .ready = port_ready};
    port->pump = (struct loop_pump){.timeout_ms = port_timeout_ms, .run = port_run};
    int r = loop_add(server->loop, &port->source, EPOLLIN, err);
    if (r < 0) {
        MHD_stop_daemon(TAKE(port->mhd));
        return r;
    }
    loop_pump_add(server->loop, &port->pump);
    return 0;
}

static void port_close(struct http_server *server, struct http_port *port) {
    if (port->mhd != NULL) {
        MHD_run(port->mhd); /* otherwise it aborts if a connection is being resumed */
        loop_pump_remove(server->loop, &port->pump);
        loop_remove(server->loop, &port->source);
        MHD_stop_daemon(TAKE(port->mhd));
    }
}

/* ---- connections ---- */

static void client_started(struct http_server *server, struct MHD_Connection *connection,
                           struct http_client *client) {
    MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, server->idle_timeout_s);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    const struct tls_context *tls = client->web_config != NULL ? client->web_config->tls : NULL;
    if (info == NULL || info->tls_session == NULL || tls == NULL) {
        return;
    }
    client->tls = info->tls_session;
    if (tls_context_apply(tls, info->tls_session) < 0) {
        shutdown(client->fd, SHUT_RDWR);
    }
}

static void client_gone(struct http_server *server, struct http_client *client) {
    if (client != NULL) {
        http_request_end(client);
        web_config_unref(client->web_config);
        http_gate_leave(&server->gate, client);
    }
}

static void client_changed(void *context, struct MHD_Connection *connection, void **client_slot,
                           enum MHD_ConnectionNotificationCode code) {
    struct http_server *server = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        /* 0.9.75 calls it from MHD_add_connection, 1.0 and later from the next MHD_run. */
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *client_slot = http_gate_find(&server->gate, info->connect_fd);
        client_started(server, connection, *client_slot);
        return;
    }
    client_gone(server, *client_slot);
}

static void sweep_fire(struct loop_timer *timer) {
    struct http_server *server = CONTAINER_OF(timer, struct http_server, sweep);
    timer->due_ns = http_gate_sweep(&server->gate, clock_monotonic_ns());
}

static void accepted(int fd, void *context) {
    struct http_server *server = context;
    /* The kernel would buffer up to 4 MiB of a response per client, and copy as much at a time. */
    static const int n_bytes = 256 << 10;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n_bytes, sizeof(n_bytes));
    struct http_client *client = http_gate_enter(&server->gate, fd);
    if (client == NULL) {
        close(fd);
        return;
    }
    struct web_config *web_config = server->web_config;
    client->web_config = web_config != NULL ? web_config_ref(web_config) : NULL;
    bool tls = web_config != NULL && web_config->tls != NULL;
    struct sockaddr_storage peer = {.ss_family = AF_UNIX};
    socklen_t len = sizeof(peer);
    getpeername(fd, (struct sockaddr *)&peer, &len);
    if (MHD_add_connection(tls ? server->secure.mhd : server->plain.mhd, fd,
                           (struct sockaddr *)&peer, len) == MHD_YES) {
        http_server_look_soon(server, client);
        return;
    }
    /* The descriptor is closed, and an announced client is gone already. */
    client_gone(server, http_gate_find(&server->gate, fd));
}

void http_server_look_soon(struct http_server *server, struct http_client *client) {
    client->look_ns = clock_monotonic_ns() + LOOK_MS * CLOCK_NS_PER_MS;
    int64_t due_ns = client->due_ns < client->look_ns ? client->due_ns : client->look_ns;
    if (due_ns < server->sweep.due_ns) {
        server->sweep.due_ns = due_ns;
    }
}

void http_server_expect_head(struct http_server *server, struct http_client *client) {
    if (client->due_ns == INT64_MAX) { /* otherwise its time began when it connected */
        client->due_ns = clock_monotonic_ns() + server->gate.header_timeout_ns;
    }
    http_server_look_soon(server, client);
}

void http_server_expect_body(struct http_server *server, struct http_client *client, size_t size,
                             int64_t due_ns) {
    client->sends_body = true;
    int64_t latest_ns = clock_monotonic_ns() + server->gate.header_timeout_ns;
    int64_t earned_ns = (int64_t)(size * CLOCK_NS_PER_SEC / MIN_BODY_RATE);
    latest_ns = latest_ns < due_ns ? latest_ns : due_ns;
    /* Bytes sent faster than the minimum rate earn no idle time. */
    client->due_ns =
        client->due_ns < latest_ns - earned_ns ? client->due_ns + earned_ns : latest_ns;
    http_server_look_soon(server, client);
}

void http_server_expect_progress(struct http_server *server, struct http_client *client) {
    client->sends_body = false;
    client->due_ns = clock_monotonic_ns() + server->idle_timeout_s * CLOCK_NS_PER_SEC;
    http_server_look_soon(server, client);
}

/* ---- life ---- */

int http_server_create(void *context, struct loop *loop, const struct http_route *routes,
                       size_t n_routes, struct http_server **ret_server, struct error *err) {
    struct http_server *server = mem_zalloc(1, sizeof(*server));
    server->context = context;
    server->loop = loop;
    server->routes = routes;
    server->n_routes = n_routes;
    server->stats = http_stats_create();
    server->sweep = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = sweep_fire};
    loop_timer_add(loop, &server->sweep);
    server->listeners = http_listeners_create(loop, accepted, server);
    int r = worker_create(loop, "auth", &server->auth_worker, err);
    if (r < 0) {
        http_server_destroy(server);
        return r;
    }
    *ret_server = server;
    return 0;
}

/* The limit of the settings, or as many as the process has descriptors for. */
static size_t max_clients(const struct settings *settings) {
    rlim_t wanted = (rlim_t)settings_int(settings, "web.max-connections");
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted + FDS_KEPT) {
        return (size_t)wanted;
    }
    limit.rlim_cur = limit.rlim_max < wanted + FDS_KEPT ? limit.rlim_max : wanted + FDS_KEPT;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= wanted + FDS_KEPT) {
        return (size_t)wanted;
    }
    size_t fewer = limit.rlim_cur > 2 * FDS_KEPT ? (size_t)limit.rlim_cur - FDS_KEPT
                                                 : (size_t)limit.rlim_cur / 2;
    log_warn("http: room for %zu connections only: the process may have %zu descriptors", fewer,
             (size_t)limit.rlim_cur);
    return fewer < (size_t)wanted ? fewer : (size_t)wanted;
}

static void apply_limits(struct http_server *server, const struct settings *settings) {
    server->gate.max_clients = max_clients(settings);
    server->gate.max_per_address =
        (size_t)settings_int(settings, "web.max-connections-per-address");
    server->gate.header_timeout_ns =
        settings_duration_ms(settings, "web.header-timeout") * CLOCK_NS_PER_MS;
    server->idle_timeout_s = idle_timeout_s(settings);
    server->max_body = (size_t)settings_int(settings, "web.max-body-size");
    server->max_bodies = (size_t)settings_int(settings, "web.max-bodies-size");
    if (server->max_bodies < server->max_body) {
        server->max_bodies = server->max_body; /* a single one is always accepted */
    }
    server->sendings.max_bytes = (size_t)settings_int(settings, "web.max-sending-size");
    /* Held connections cannot be evicted, so some room is always left for others. */
    size_t most_held = server->gate.max_clients / 2;
    server->max_tasks = server->gate.max_clients / 4;
    server->checks.max = most_held;
    size_t max_requests = (size_t)settings_int(settings, "web.max-requests");
    server->max_scrapes = max_requests == 0 || max_requests > most_held ? most_held : max_requests;
    server->health_is_open = settings_bool(settings, "web.auth-exempt-health");
}

/* A service manager that passes sockets wants them used: enabling waap.socket is enough. */
static bool uses_passed(const struct settings *settings) {
    int fds[LISTEN_PASSED_MAX];
    return settings_bool(settings, "web.systemd-socket") || listen_passed_find("http", fds) > 0;
}

void http_server_look_up(const struct settings *settings, struct listen_names *names) {
    const char *const *addresses = settings_list(settings, "web.listen-address");
    listen_names_add_group(names, settings_string(settings, "web.listen-group"));
    for (; !uses_passed(settings) && *addresses != NULL; addresses++) {
        listen_names_add_host(names, *addresses);
    }
}

int http_server_listen(struct http_listeners *listeners, const struct settings *settings,
                       const struct listen_names *names, struct error *err) {
    const struct http_listen_config config = {
        .name = "http",
        .addresses = settings_list(settings, "web.listen-address"),
        .passed = uses_passed(settings),
        .mode = settings_string(settings, "web.listen-mode"),
        .group = settings_string(settings, "web.listen-group"),
        .group_option = "web.listen-group",
        .names = names,
    };
    struct error cause;
    int r = http_listeners_listen(listeners, &config, &cause);
    return r < 0 ? error_set(err, r, "%s (see --web.listen-address)", cause.text) : 0;
}

int http_server_configure(struct http_server *server, struct config *config,
                          struct web_config *web_config, struct error *err) {
    const struct settings *settings = config->settings;
    bool tls = web_config != NULL && web_config->tls != NULL;
    int r = 0;
    if (server->plain.mhd == NULL) {
        r = port_open(server, &server->plain, false, settings, err);
    }
    if (r == 0 && tls && server->secure.mhd == NULL) {
        r = port_open(server, &server->secure, true, settings, err);
    }
    if (r == 0) {
        r = http_server_listen(server->listeners, settings, config->names, err);
    }
    if (r < 0) {
        return r;
    }
    if (server->config != NULL &&
        !settings_equal(server->config->settings, settings, "web.max-header-size")) {
        log_warn("http: restart to change web.max-header-size");
    }
    apply_limits(server, settings);
    struct config *old_config = server->config;
    server->config = config_ref(config);
    config_unref(old_config);
    struct web_config *old = server->web_config;
    if (old != NULL && web_config != NULL && old->users != NULL && web_config->users != NULL) {
        users_inherit(web_config->users, old->users);
    }
    server->web_config = web_config != NULL ? web_config_ref(web_config) : NULL;
    web_config_unref(old);
    return 0;
}

void http_server_close(struct http_server *server) {
    server->is_closing = true;
    http_listeners_destroy(TAKE(server->listeners));
}

void http_server_shut(struct http_server *server) {
    server->is_shut = true;
}

size_t http_server_n_busy(const struct http_server *server) {
    size_t n = 0;
    for (const struct http_client *c = server->gate.oldest; c != NULL; c = c->younger) {
        n += c->class >= HTTP_CLIENT_BUSY && !c->leaving;
    }
    return n;
}

size_t http_server_n_held(const struct http_server *server) {
    return server->n_scrapes + server->n_tasks + server->n_polls + server->n_checks +
           server->n_uploads;
}

void http_server_destroy(struct http_server *server) {
    if (server == NULL) {
        return;
    }
    http_listeners_destroy(server->listeners);
    port_close(server, &server->plain);
    port_close(server, &server->secure);
    worker_destroy(server->auth_worker, 1000);
    loop_timer_remove(server->loop, &server->sweep);
    web_config_unref(server->web_config);
    config_unref(server->config);
    http_stats_destroy(server->stats);
    free(server);
}

void http_health_alive(struct http_request *request) {
    http_reply_text(request, MHD_HTTP_OK, "waap is healthy.");
}

void http_health_ready(struct http_request *request) {
    if (request->server->is_closing) {
        http_reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "waap is stopping.");
    } else {
        http_reply_text(request, MHD_HTTP_OK, "waap is ready.");
    }
}
