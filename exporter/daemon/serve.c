#include "exporter/daemon/serve.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "collectors/container/names.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/file.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/core/version.h"
#include "exporter/daemon/daemon.h"
#include "exporter/daemon/handlers.h"
#include "exporter/daemon/reload.h"
#include "exporter/daemon/self_metrics.h"
#include "exporter/daemon/upload.h"
#include "exporter/daemon/web_watch.h"
#include "exporter/http/access.h"
#include "exporter/net/address.h"

enum { EXIT_USAGE = 2, DRAIN_MS = 1000, STOP_COLLECTORS_MS = 500, STOP_WORKER_MS = 200 };

static const struct http_route routes[] = {
    /* First, because it may be set to "/" and then overrides that path. */
    {NULL, "/metrics", HTTP_GET | HTTP_HEAD, .handle = http_metrics_handle},
    {"/", "/", HTTP_GET | HTTP_HEAD, .handle = http_live_page},
    {"/-/healthy", "/-/healthy", HTTP_GET | HTTP_HEAD, .health = true, .handle = http_health_alive},
    {"/-/quit", "/-/quit", HTTP_POST | HTTP_PUT, .may_write = http_lifecycle_may_use,
     .handle = http_lifecycle_quit},
    {"/-/ready", "/-/ready", HTTP_GET | HTTP_HEAD, .health = true, .handle = http_health_ready},
    {"/-/reload", "/-/reload", HTTP_POST | HTTP_PUT, .may_write = http_lifecycle_may_use,
     .handle = http_lifecycle_reload},
    {"/api/v1/admin/wipe", "/api/v1/admin/wipe", HTTP_PUT, .may_write = http_gateway_may_wipe,
     .handle = http_gateway_wipe},
    {"/api/v1/metrics", "/api/v1/metrics", HTTP_GET | HTTP_HEAD, .handle = http_gateway_metrics},
    {"/api/v1/plugins", "/api/v1/plugins", HTTP_GET | HTTP_HEAD | HTTP_PUT, .prefix = true,
     .takes_body = true, .may_write = http_access_may_write, .handle = http_knobs_handle},
    {"/api/v1/push", "/api/v1/push", HTTP_POST | HTTP_PUT, .takes_body = true,
     .may_write = http_upload_may_push, .refused = http_upload_refused, .handle = http_push_handle},
    {"/api/v1/series", "/api/v1/series", HTTP_DELETE, .may_write = http_access_may_write,
     .handle = http_gateway_delete},
    {"/api/v1/status", "/api/v1/status", HTTP_GET | HTTP_HEAD, .handle = http_gateway_status},
    {"/live.css", "/live.css", HTTP_GET | HTTP_HEAD, .handle = http_live_file},
    {"/live.js", "/live.js", HTTP_GET | HTTP_HEAD, .handle = http_live_file},
    {"/metrics/job", "/metrics/job", HTTP_DELETE | HTTP_POST | HTTP_PUT, .prefix = true,
     .takes_body = true, .may_write = http_upload_may_push, .refused = http_upload_refused,
     .handle = http_gateway_push},
    {"/metrics/job@base64", "/metrics/job", HTTP_DELETE | HTTP_POST | HTTP_PUT, .prefix = true,
     .takes_body = true, .may_write = http_upload_may_push, .refused = http_upload_refused,
     .handle = http_gateway_push},
};

/* ---- signals ---- */

static void signals_ready(struct loop_source *source, uint32_t events) {
    (void)events;
    struct daemon *daemon = CONTAINER_OF(source, struct daemon, signals);
    struct signalfd_siginfo info;
    while (read(source->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGHUP) {
            log_info("serve: stopping on signal %u", info.ssi_signo);
            loop_stop(daemon->loop);
        } else if (!daemon->stopping) {
            reload_start(daemon, NULL);
        }
    }
}

/* The mapped file of the push table was truncated, or its medium failed. On return, the same access
 * ends the process. */
static void report_sigbus(int number) {
    (void)number;
    static const char text[] =
        "waap: a mapped file was truncated or cannot be read: see --push.table\n";
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
}

static int take_signals(struct daemon *daemon, struct error *err) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGBUS, &(struct sigaction){.sa_handler = report_sigbus, .sa_flags = SA_RESETHAND},
              NULL);
    daemon->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    daemon->signals.ready = signals_ready;
    if (daemon->signals.fd < 0) {
        return error_set(err, -errno, "signalfd: %m");
    }
    return loop_add(daemon->loop, &daemon->signals, EPOLLIN, err);
}

/* ---- start and end ---- */

static int start_push(struct daemon *daemon, const struct settings *settings, struct error *err) {
    int r =
        push_keeper_create(daemon->loop, settings, daemon->collectors, &daemon->push_keeper, err);
    if (r < 0) {
        return r;
    }
    daemon->push_store = push_keeper_store(daemon->push_keeper);
    engine_set_push_store(daemon->engine, daemon->push_store);
    daemon->push_log = push_keeper_log(daemon->push_keeper);
    daemon->pywaggle = pywaggle_create(daemon->loop, daemon->push_store, daemon->push_log);
    daemon->knobs = knobs_create(daemon->push_store);
    http_knobs_listen(daemon);
    daemon->push_socket =
        push_socket_create(daemon->loop, daemon->push_store, daemon->knobs, daemon->push_log);
    if (daemon->demo != NULL) {
        daemon->demo_plugins = demo_plugins_create(daemon->loop, daemon->push_store, daemon->knobs);
    }
    return 0;
}

static int start(struct daemon *daemon, struct config *config, struct web_config *web_config,
                 struct error *err) {
    int r = loop_create(&daemon->loop, err);
    r = r < 0 ? r : take_signals(daemon, err);
    if (r == 0) {
        daemon->notify = notify_create(daemon->loop);
        r = demo_create(config->settings, &daemon->demo, err);
    }
    r = r < 0 ? r : demo_redirect(daemon->demo, config->settings, err);
    r = r < 0 ? r : worker_create(daemon->loop, "page", &daemon->page_worker, err);
    r = r < 0 ? r : worker_create(daemon->loop, "reload", &daemon->reload_worker, err);
    r = r < 0 ? r : engine_create(daemon->loop, daemon->collectors, &daemon->engine, err);
    if (r == 0) {
        engine_set_nvml(daemon->engine, demo_nvml(daemon->demo));
        daemon->self_metrics = self_metrics_create(daemon->engine);
        r = start_push(daemon, config->settings, err);
    }
    r = r < 0 ? r
              : http_server_create(daemon, daemon->loop, routes, ARRAY_LEN(routes), &daemon->http,
                                   err);
    r = r < 0 ? r : reload_apply(daemon, config, web_config, err);
    if (r == 0) {
        daemon->web_watch = web_watch_create(daemon);
    }
    return r;
}

/* Replies to waiting requests with the results so far, and allows a second for sending. */
static void drain(struct daemon *daemon) {
    int64_t until_ns = clock_monotonic_ns() + DRAIN_MS * CLOCK_NS_PER_MS;
    http_server_close(daemon->http);
    engine_release(daemon->engine);
    http_knobs_release(daemon);
    while (http_server_n_busy(daemon->http) > 0 && clock_monotonic_ns() < until_ns) {
        loop_turn(daemon->loop, 10);
    }
}

/* False if threads or requests did not end in time. */
static bool stop(struct daemon *daemon) {
    daemon->stopping = true;
    notify_stopping(daemon->notify);
    if (daemon->http != NULL) {
        drain(daemon);
        http_server_shut(daemon->http);
    }
    bool clean = worker_destroy(daemon->reload_worker, STOP_WORKER_MS);
    if (daemon->loop != NULL) {
        loop_turn(daemon->loop, 0); /* ends a reload that was just read */
    }
    if (daemon->http != NULL) {
        clean &= http_server_n_held(daemon->http) == 0;
    }
    clean &= push_keeper_stop(daemon->push_keeper);
    if (daemon->engine != NULL) {
        clean &= engine_destroy(daemon->engine, STOP_COLLECTORS_MS);
    }
    clean = clean && worker_destroy(daemon->page_worker, STOP_WORKER_MS);
    if (!clean) {
        return false;
    }
    self_metrics_destroy(daemon->self_metrics);
    web_watch_destroy(daemon->web_watch);
    http_server_destroy(daemon->http);
    pywaggle_destroy(daemon->pywaggle);
    demo_plugins_destroy(daemon->demo_plugins);
    push_socket_destroy(daemon->push_socket);
    knobs_destroy(daemon->knobs);
    push_keeper_destroy(daemon->push_keeper);
    notify_destroy(daemon->notify);
    config_unref(daemon->config);
    if (daemon->signals.fd > 0) {
        close(daemon->signals.fd);
    }
    loop_destroy(daemon->loop);
    return true;
}

/* Every scrape builds a page: to get its memory from the system each time would cost more than
 * rendering, so up to KEPT_BYTES are kept. All threads share one arena, which is locked while a
 * growing block is copied; large blocks are mapped separately, so that the loop does not wait for a
 * worker. */
static void tune_memory(void) {
    enum { KEPT_BYTES = 32 << 20, LARGE_BLOCK = 4 << 20 };
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}

/* For whoever starts it by hand. A page that a proxy or a socket of systemd serves has another
 * address, which is not known here. */
static void log_live_page(const struct settings *settings, bool tls) {
    const char *address = settings_list(settings, "web.listen-address")[0];
    struct http_address where;
    if (address == NULL || settings_bool(settings, "web.systemd-socket") ||
        http_address_parse(address, &where, NULL) < 0 || where.is_unix ||
        strcmp(where.port, "0") == 0 ||
        strcmp(settings_string(settings, "web.telemetry-path"), "/") == 0) {
        return;
    }
    const char *host = http_address_is_any(&where) ? "localhost" : where.host;
    bool is_v6 = strchr(host, ':') != NULL;
    log_info("serve: live page: %s://%s%s%s:%s/", tls ? "https" : "http", is_v6 ? "[" : "", host,
             is_v6 ? "]" : "", where.port);
}

/* ---- what a container does not see ---- */

/* Its first process, or the child of an init in it. */
static bool lacks_processes(const struct settings *settings) {
    (void)settings;
    return getpid() == 1 || getppid() <= 1;
}

static bool lacks_root(const struct settings *settings) {
    return strcmp(settings_string(settings, "path.rootfs"), "/") == 0;
}

static bool lacks_runtimes(const struct settings *settings) {
    return settings_option(settings, "collector.container") != NULL &&
           settings_bool(settings, "collector.container") &&
           !container_names_reachable(settings_string(settings, "path.rootfs"), settings);
}

/* /proc and /sys show the driver to every container, but its devices are mounted on request. */
static bool lacks_driver(const struct settings *settings) {
    char *card CLEANUP_FREE =
        file_path_join(settings_string(settings, "path.procfs"), "driver/nvidia/version");
    char *tegra CLEANUP_FREE =
        file_path_join(settings_string(settings, "path.sysfs"), "module/nvgpu");
    return (access(card, F_OK) == 0 || access(tegra, F_OK) == 0) &&
           access("/dev/nvidiactl", F_OK) < 0 && access("/dev/nvmap", F_OK) < 0;
}

/* Whether nothing is mounted at the directory of the plugins' socket or above it. */
static bool lacks_plugins(const struct settings *settings) {
    const char *socket = settings_list(settings, "push.socket")[0];
    struct buf mounts CLEANUP_BUF = {0};
    if (socket == NULL || file_read("/proc/self/mountinfo", &mounts, NULL) < 0) {
        return false;
    }
    char *path CLEANUP_FREE = mem_strdup(socket);
    for (char *slash; (slash = strrchr(path, '/')) != NULL && slash > path;) {
        *slash = '\0';
        struct buf field CLEANUP_BUF = {0};
        buf_printf(&field, " %s ", path);
        if (strstr(buf_str(&mounts), buf_str(&field)) != NULL) {
            return false;
        }
    }
    return true;
}

static void log_container(const struct settings *settings) {
    static const struct {
        bool (*lacks)(const struct settings *settings);
        const char *what, *flag;
    } rows[] = {
        {lacks_processes, "the host's processes", "--pid=host"},
        {lacks_root, "the host's files and other containers",
         "-v /:/host:ro,rslave IMAGE serve --path.rootfs=/host --path.procfs=/host/proc "
         "--path.sysfs=/host/sys --path.cgroupfs=/host/sys/fs/cgroup"},
        {lacks_runtimes, "the names of containers",
         "--user 0 and, without /host, -v /run/docker.sock:/run/docker.sock:ro"},
        {lacks_driver, "NVIDIA's library", "--runtime nvidia"},
        {lacks_plugins, "plugins in other containers", "-v /run/waap:/run/waap"},
    };
    bool contained = getenv("container") != NULL || access("/.dockerenv", F_OK) == 0;
    for (size_t i = 0; contained && i < ARRAY_LEN(rows); i++) {
        if (rows[i].lacks(settings)) {
            log_info("serve: this container hides %s: add %s", rows[i].what, rows[i].flag);
        }
    }
}

int serve_main(const struct collector *const *collectors, int argc, char **argv) {
    struct daemon daemon = {.collectors = collectors,
                            .argc = argc,
                            .argv = argv,
                            .start_wall_seconds = clock_wall_seconds()};
    struct problems problems CLEANUP_PROBLEMS = {0};
    struct config *config = NULL;
    struct web_config *web_config = NULL;
    if (reload_read(&daemon, &config, &web_config, &problems) < 0) {
        problems_print(&problems, stderr);
        return EXIT_USAGE;
    }
    tune_memory();
    log_configure((enum log_level)settings_choice(config->settings, "log.level"),
                  (enum log_format)settings_choice(config->settings, "log.format"));
    log_info("serve: waap %s (%s)", VERSION_TEXT, version_revision);
    if (settings_choice(config->settings, "demo") == 0) {
        log_container(config->settings);
    }

    struct error error;
    int code = EXIT_SUCCESS;
    if (start(&daemon, config, web_config, &error) == 0) {
        log_live_page(config->settings, web_config != NULL && web_config->tls != NULL);
        notify_ready(daemon.notify, "serving");
        loop_run(daemon.loop);
    } else {
        log_error("serve: %s", error.text);
        code = EXIT_FAILURE;
    }
    config_unref(config);
    web_config_unref(web_config);
    bool clean = stop(&daemon);
    demo_destroy(daemon.demo);
    if (!clean) {
        log_warn("serve: threads did not stop in time; exiting anyway");
        _exit(code);
    }
    if (code == EXIT_SUCCESS) {
        log_info("serve: stopped");
    }
    return code;
}
