#include "placement/service/service.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/gzip.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/core/version.h"
#include "exporter/http/process_metrics.h"
#include "exporter/metrics/exposition.h"

enum { DRAIN_MS = 500, STOP_MS = 3000 };

/* ---- flags ---- */

/* Rejects the flags that only the daemon has. */
static int check_flags(const struct settings *settings, struct problems *problems) {
    static const char *const prefixes[] = {"web.", "log.", "push.allow", "push.user"};
    int r = 0;
    for (const struct option *option = exporter_options; option->name != NULL; option++) {
        bool is_ours = settings_origin(settings, option->name) != SETTINGS_FLAG;
        for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
            is_ours = is_ours || strncmp(option->name, prefixes[i], strlen(prefixes[i])) == 0;
        }
        if (!is_ours) {
            struct buf flag CLEANUP_BUF = {0};
            buf_printf(&flag, "--%s", option->name);
            problems_add(problems, buf_str(&flag), 0, 0, "only for waap serve");
            r = -EINVAL;
        }
    }
    return r;
}

int service_init(struct service *service, const char *name, const char *default_address,
                 const struct option *options, int argc, char **argv, struct problems *problems) {
    static const char address[] = "web.listen-address";
    struct config *config = mem_zalloc(1, sizeof(*config));
    *service = (struct service){.name = name, .config = config};
    atomic_init(&config->refs, 1);
    int r = flags_read(&service->flags, options, exporter_options, argc, argv, problems);
    config->settings = service->flags.settings;
    r = check_flags(config->settings, problems) < 0 ? -EINVAL : r;
    if (r < 0) {
        return r;
    }
    if (settings_origin(config->settings, address) == SETTINGS_DEFAULT) {
        settings_set(config->settings, settings_option(config->settings, address), SETTINGS_FILE,
                     default_address, NULL);
    }
    r = web_config_load_set(config->settings, &service->web_config, problems);
    config->names = listen_names_create();
    if (r == 0) {
        http_server_look_up(config->settings, config->names);
    }
    log_configure((enum log_level)settings_choice(config->settings, "log.level"),
                  (enum log_format)settings_choice(config->settings, "log.format"));
    return r;
}

/* ---- life ---- */

static void signals_ready(struct loop_source *source, uint32_t events) {
    (void)events;
    struct service *service = CONTAINER_OF(source, struct service, signals);
    struct signalfd_siginfo info;
    while (read(source->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        log_info("%s: stopping on signal %u", service->name, info.ssi_signo);
        loop_stop(service->loop);
    }
}

int service_open(struct service *service, struct error *err) {
    int r = loop_create(&service->loop, err);
    if (r < 0) {
        return r;
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    service->signals.ready = signals_ready;
    service->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (service->signals.fd < 0) {
        return error_set(err, -errno, "signalfd: %m");
    }
    return loop_add(service->loop, &service->signals, EPOLLIN, err);
}

int service_listen(struct service *service, const struct http_route *routes, size_t n_routes,
                   struct error *err) {
    int r = http_server_create(service, service->loop, routes, n_routes, &service->http, err);
    return r < 0 ? r
                 : http_server_configure(service->http, service->config, service->web_config, err);
}

void service_run(struct service *service) {
    log_info("%s: waap %s (%s)", service->name, VERSION_TEXT, version_revision);
    loop_run(service->loop);
    http_server_close(service->http);
}

void service_close(struct service *service, bool clean, int code) {
    if (service->http != NULL) {
        int64_t until_ns = clock_monotonic_ns() + DRAIN_MS * CLOCK_NS_PER_MS;
        http_server_close(service->http);
        while (http_server_n_busy(service->http) > 0 && clock_monotonic_ns() < until_ns) {
            loop_turn(service->loop, 10);
        }
        http_server_shut(service->http);
        clean = clean && http_server_n_held(service->http) == 0;
    }
    if (!clean) {
        log_warn("%s: threads did not stop in time; exiting anyway", service->name);
        _exit(code);
    }
    http_server_destroy(TAKE(service->http));
}

void service_finish(struct service *service) {
    if (service->signals.fd > 0) {
        close(service->signals.fd);
    }
    loop_destroy(TAKE(service->loop));
    config_unref(TAKE(service->config));
    free(TAKE(service->flags.options));
    web_config_unref(TAKE(service->web_config));
}

/* ---- tasks ---- */

static void task_run(struct worker_job *job) {
    struct service_task *task = CONTAINER_OF(job, struct service_task, job);
    task->run(task);
}

static void task_done(struct worker_job *job) {
    struct service_task *task = CONTAINER_OF(job, struct service_task, job);
    task->is_running = false;
    task->done(task);
}

static void task_due(struct loop_timer *timer) {
    struct service_task *task = CONTAINER_OF(timer, struct service_task, timer);
    timer->due_ns = clock_monotonic_ns() + task->interval_ms * CLOCK_NS_PER_MS;
    if (!task->is_running) {
        task->is_running = true;
        task->job = (struct worker_job){.run = task_run, .done = task_done};
        worker_submit(task->worker, &task->job);
    }
}

int service_task_start(struct service_task *task, struct loop *loop, const char *name,
                       struct error *err) {
    int r = worker_create(loop, name, &task->worker, err);
    if (r == 0) {
        task->loop = loop;
        task->timer = (struct loop_timer){.due_ns = clock_monotonic_ns(), .fire = task_due};
        loop_timer_add(loop, &task->timer);
    }
    return r;
}

bool service_task_stop(struct service_task *task) {
    if (task->loop != NULL) {
        loop_timer_remove(task->loop, &task->timer);
    }
    return worker_destroy(TAKE(task->worker), STOP_MS);
}

/* ---- metrics ---- */

void service_reply_metrics(struct http_request *request, const struct snapshot *snapshot) {
    struct exposition_part *parts[] = {
        exposition_part_create(snapshot, NULL),
        process_metrics_part(),
    };
    struct exposition_choice choice =
        exposition_negotiate(http_header(request, MHD_HTTP_HEADER_ACCEPT));
    struct exposition_page page CLEANUP_EXPOSITION_PAGE = {0};
    struct buf body CLEANUP_BUF = {0};
    bool gzip = exposition_accepts_gzip(http_header(request, MHD_HTTP_HEADER_ACCEPT_ENCODING));
    exposition_page_write(&page, choice, parts, ARRAY_LEN(parts), NULL);
    if (gzip) {
        gzip_compress(page.pieces, page.n_pieces, &body);
    }
    for (size_t i = 0; !gzip && i < page.n_pieces; i++) {
        buf_add(&body, page.pieces[i].iov_base, page.pieces[i].iov_len);
    }
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        exposition_part_unref(parts[i]);
    }
    http_reply_buf(request, MHD_HTTP_OK, exposition_content_type(choice), &body);
    if (gzip && request->response != NULL) {
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    }
}
