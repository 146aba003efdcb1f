#include "placement/service/service.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/gzip.h"
#include "exporter/core/log.h"
#include "exporter/core/version.h"
#include "exporter/http/process_metrics.h"
#include "exporter/metrics/exposition.h"

enum { MAX_FLAGS = 256, DRAIN_MS = 500 };

static const struct collector *const no_collectors[] = {NULL};

/* ---- flags ---- */

static const char *const prefixes[] = {"web.", "log.", "push.allow", "push.user"};

static bool is_ours(const char *arg) {
    if (strncmp(arg, "--", 2) != 0) {
        return false;
    }
    const char *name = arg + (strncmp(arg, "--no-", 5) == 0 ? 5 : 2);
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the value of this flag is the next argument. */
static bool wants_value(const char *arg) {
    if (strchr(arg, '=') != NULL) {
        return false;
    }
    for (const struct option *option = exporter_options; option->name != NULL; option++) {
        if (strcmp(option->name, arg + 2) == 0) {
            return option->type != OPTION_BOOL && option->bare_text == NULL;
        }
    }
    return false;
}

int service_split_flags(int *argc, char **argv, char **flags) {
    int n_flags = 0, n_left = *argc > 0;
    for (int i = 1; i < *argc; i++) {
        if (!is_ours(argv[i])) {
            argv[n_left++] = argv[i];
            continue;
        }
        flags[n_flags++] = argv[i];
        if (wants_value(argv[i]) && i + 1 < *argc && strncmp(argv[i + 1], "--", 2) != 0) {
            flags[n_flags++] = argv[++i];
        }
    }
    argv[n_left] = NULL;
    flags[n_flags] = NULL;
    *argc = n_left;
    return n_flags;
}

static bool has_address(char *const *flags) {
    static const char flag[] = "--web.listen-address";
    for (; *flags != NULL; flags++) {
        if (strncmp(*flags, flag, strlen(flag)) == 0) {
            return true;
        }
    }
    return false;
}

static int load_config(struct service *service, const char *default_address, char *const *flags,
                       struct problems *problems) {
    struct buf address CLEANUP_BUF = {0};
    char *argv[MAX_FLAGS + 3] = {"service"};
    int argc = 1;
    buf_printf(&address, "--web.listen-address=%s", default_address);
    if (!has_address(flags)) {
        argv[argc++] = address.data;
    }
    for (; *flags != NULL && argc < MAX_FLAGS + 2; flags++) {
        argv[argc++] = *flags;
    }
    struct config_sources sources = {.argc = argc, .argv = argv};
    return config_load(no_collectors, &sources, &service->config, problems);
}

int service_init(struct service *service, const char *name, const char *default_address,
                 char *const *flags, struct problems *problems) {
    *service = (struct service){.name = name};
    int r = load_config(service, default_address, flags, problems);
    if (r < 0) {
        return r;
    }
    struct config *config = service->config;
    const char *path = settings_string(config->settings, "web.config.file");
    if (path[0] != '\0') {
        r = web_config_load(path, &service->web_config, problems);
    }
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
}

void service_stop(struct service *service) {
    if (service->http != NULL) {
        http_server_close(service->http);
    }
}

bool service_close(struct service *service) {
    if (service->http == NULL) {
        return true;
    }
    int64_t until_ns = clock_monotonic_ns() + DRAIN_MS * CLOCK_NS_PER_MS;
    http_server_close(service->http);
    while (http_server_n_busy(service->http) > 0 && clock_monotonic_ns() < until_ns) {
        loop_turn(service->loop, 10);
    }
    http_server_shut(service->http);
    if (http_server_n_held(service->http) > 0) {
        return false;
    }
    http_server_destroy(TAKE(service->http));
    return true;
}

void service_finish(struct service *service) {
    if (service->signals.fd > 0) {
        close(service->signals.fd);
    }
    loop_destroy(TAKE(service->loop));
    config_unref(TAKE(service->config));
    web_config_unref(TAKE(service->web_config));
}

/* ---- metrics ---- */

static void reply_page(struct http_request *request, struct exposition_part *const *parts,
                       size_t n_parts) {
    struct exposition_choice choice =
        exposition_negotiate(http_header(request, MHD_HTTP_HEADER_ACCEPT));
    struct exposition_page page CLEANUP_EXPOSITION_PAGE = {0};
    struct buf body CLEANUP_BUF = {0};
    bool gzip = exposition_accepts_gzip(http_header(request, MHD_HTTP_HEADER_ACCEPT_ENCODING));
    exposition_page_write(&page, choice, parts, n_parts, NULL);
    if (gzip) {
        gzip_compress(page.pieces, page.n_pieces, &body);
    }
    for (size_t i = 0; !gzip && i < page.n_pieces; i++) {
        buf_add(&body, page.pieces[i].iov_base, page.pieces[i].iov_len);
    }
    http_reply_buf(request, MHD_HTTP_OK, exposition_content_type(choice), &body);
    if (gzip && request->response != NULL) {
        MHD_add_response_header(request->response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    }
}

void service_reply_metrics(struct http_request *request, const struct snapshot *snapshot) {
    struct exposition_part *parts[] = {
        exposition_part_create(snapshot, NULL),
        process_metrics_part(),
    };
    reply_page(request, parts, ARRAY_LEN(parts));
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        exposition_part_unref(parts[i]);
    }
}
