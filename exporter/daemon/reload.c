#include "exporter/daemon/reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/socket.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/daemon/handlers.h"
#include "exporter/http/access.h"

struct reload {
    struct daemon *daemon;
    struct http_request *request;
    struct worker_job job;
    struct config *config;
    struct web_config *web_config;
    struct problems problems;
};

int reload_read(const struct daemon *daemon, struct config **ret_config,
                struct web_config **ret_web_config, struct problems *problems) {
    struct config *config CLEANUP_CONFIG = NULL;
    int r =
        config_from_command_line(daemon->collectors, daemon->argc, daemon->argv, &config, problems);
    r = r < 0 ? r : web_config_load_set(config->settings, ret_web_config, problems);
    if (r < 0) {
        return r;
    }
    config->names = listen_names_create();
    http_server_look_up(config->settings, config->names);
    push_socket_lookup(config->settings, config->names);
    *ret_config = TAKE(config);
    return 0;
}

int reload_apply(struct daemon *daemon, struct config *config, struct web_config *web_config,
                 struct error *err) {
    const struct settings *settings = config->settings;
    struct web_config *old_web_config = daemon->http->web_config;
    old_web_config = old_web_config != NULL ? web_config_ref(old_web_config) : NULL;
    int r = http_server_configure(daemon->http, config, web_config, err);
    if (r == 0) {
        r = engine_configure(daemon->engine, config, err);
        if (r < 0 && daemon->config != NULL) { /* restore addresses and limits */
            http_server_configure(daemon->http, daemon->config, old_web_config, NULL);
        }
    }
    web_config_unref(old_web_config);
    if (r < 0) {
        return r;
    }
    push_keeper_configure(daemon->push_keeper, settings);
    pywaggle_configure(daemon->pywaggle, settings);
    push_socket_configure(daemon->push_socket, config);
    log_configure((enum log_level)settings_choice(settings, "log.level"),
                  (enum log_format)settings_choice(settings, "log.format"));
    struct config *old = daemon->config;
    daemon->config = config_ref(config);
    config_unref(old);
    daemon->reload_ok = true;
    daemon->reload_wall_seconds = clock_wall_seconds();
    for (size_t i = 0; i < config->warnings.n_lines; i++) {
        log_warn("%s", config->warnings.lines[i]);
    }
    return 0;
}

static void reload_run(struct worker_job *job) {
    struct reload *reload = CONTAINER_OF(job, struct reload, job);
    struct error err;
    if (reload_read(reload->daemon, &reload->config, &reload->web_config, &reload->problems) == 0 &&
        demo_redirect(reload->daemon->demo, reload->config->settings, &err) < 0) {
        problems_add(&reload->problems, "demo", 0, 0, "%s", err.text);
        config_unref(TAKE(reload->config));
    }
}

static void reject(struct reload *reload) {
    struct buf text CLEANUP_BUF = {0};
    buf_add_str(&text, "configuration rejected, the old one stays active:");
    for (size_t i = 0; i < reload->problems.n_lines; i++) {
        log_error("reload: %s", reload->problems.lines[i]);
        buf_printf(&text, "\n%s", reload->problems.lines[i]);
    }
    log_error("reload: configuration rejected, the old one stays active");
    reload->daemon->reload_ok = false;
    notify_ready(reload->daemon->notify, "configuration rejected, the old one stays active");
    if (reload->request != NULL) {
        http_reply_text(reload->request, MHD_HTTP_INTERNAL_SERVER_ERROR, "%s", buf_str(&text));
    }
}

static void reload_done(struct worker_job *job) {
    struct reload *reload = CONTAINER_OF(job, struct reload, job);
    struct error error;
    if (reload->daemon->stopping) {
        problems_add(&reload->problems, "reload", 0, 0, "waap is stopping");
    } else if (reload->config != NULL &&
               reload_apply(reload->daemon, reload->config, reload->web_config, &error) < 0) {
        problems_add(&reload->problems, "reload", 0, 0, "%s", error.text);
    }
    if (reload->problems.n_lines > 0) {
        reject(reload);
    } else {
        log_info("reload: configuration applied");
        notify_ready(reload->daemon->notify, "serving");
        if (reload->request != NULL) {
            http_reply_text(reload->request, MHD_HTTP_OK, "configuration applied");
        }
    }
    config_unref(reload->config);
    web_config_unref(reload->web_config);
    problems_finish(&reload->problems);
    free(reload);
}

void reload_start(struct daemon *daemon, struct http_request *request) {
    struct reload *reload = mem_zalloc(1, sizeof(*reload));
    reload->daemon = daemon;
    reload->request = request;
    reload->job = (struct worker_job){.run = reload_run, .done = reload_done};
    notify_reloading(daemon->notify);
    worker_submit(daemon->reload_worker, &reload->job);
}

/* ---- handlers ---- */

bool http_lifecycle_may_use(struct http_request *request) {
    if (settings_bool(daemon_of(request)->config->settings, "web.enable-lifecycle")) {
        return http_access_may_write(request);
    }
    http_reply_text(request, MHD_HTTP_FORBIDDEN,
                    "lifecycle requests are not allowed: start with --web.enable-lifecycle");
    return false;
}

void http_lifecycle_reload(struct http_request *request) {
    if (http_hold(request)) {
        reload_start(request->context, request);
    }
}

void http_lifecycle_quit(struct http_request *request) {
    http_reply_text(request, MHD_HTTP_OK, "waap is stopping.");
    loop_stop(daemon_of(request)->loop);
}
