#include "exporter/daemon/web_watch.h"

#include <stdlib.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"

#define WATCH_INTERVAL_NS (3 * CLOCK_NS_PER_SEC)

struct web_watch {
    struct daemon *daemon;
    struct loop_timer timer;
    struct worker_job job;
    uint64_t seen;  /* stamp of the files at the last look */
    uint64_t tried; /* stamp of the files that were tried last */

    /* Used by the worker while the job is under way. */
    struct web_config *in_force;
    char *path;
    struct web_config *fresh; /* NULL: nothing to apply */
    struct problems problems;
};

static void watch_run(struct worker_job *job) {
    struct web_watch *watch = CONTAINER_OF(job, struct web_watch, job);
    uint64_t stamp;
    bool outdated = web_config_outdated(watch->in_force, &stamp);
    /* Certificate and key are replaced one after the other: wait until they have settled. */
    bool settled = stamp == watch->seen;
    watch->seen = stamp;
    if (!outdated || !settled || stamp == watch->tried) {
        return;
    }
    watch->tried = stamp;
    web_config_load(watch->path, &watch->fresh, &watch->problems);
}

static void apply(struct web_watch *watch) {
    struct daemon *daemon = watch->daemon;
    struct error error;
    if (http_server_configure(daemon->http, daemon->config, watch->fresh, &error) < 0) {
        problems_add(&watch->problems, "web configuration", 0, 0, "%s", error.text);
        return;
    }
    daemon->reload_ok = true;
    daemon->reload_wall_seconds = clock_wall_seconds();
    log_info("web: changed files applied");
}

static void watch_done(struct worker_job *job) {
    struct web_watch *watch = CONTAINER_OF(job, struct web_watch, job);
    struct daemon *daemon = watch->daemon;
    /* Otherwise a reload has read the files in the meantime. */
    bool current = daemon->http->web_config == watch->in_force && !daemon->stopping;
    if (watch->fresh != NULL && current) {
        apply(watch);
    }
    for (size_t i = 0; i < watch->problems.n_lines; i++) {
        log_error("web: %s", watch->problems.lines[i]);
    }
    if (watch->problems.n_lines > 0) {
        log_error("web: changed files rejected, the old ones stay active");
        daemon->reload_ok = false;
    }
    problems_finish(&watch->problems);
    web_config_unref(TAKE(watch->fresh));
    web_config_unref(TAKE(watch->in_force));
    free(TAKE(watch->path));
    watch->timer.due_ns = clock_monotonic_ns() + WATCH_INTERVAL_NS;
}

static void watch_fire(struct loop_timer *timer) {
    struct web_watch *watch = CONTAINER_OF(timer, struct web_watch, timer);
    struct daemon *daemon = watch->daemon;
    struct web_config *in_force = daemon->http->web_config;
    timer->due_ns = clock_monotonic_ns() + WATCH_INTERVAL_NS;
    if (in_force == NULL || daemon->stopping) { /* its worker may be gone */
        return;
    }
    watch->path = mem_strdup(settings_string(daemon->config->settings, "web.config.file"));
    timer->due_ns = LOOP_NEVER; /* until the job is done */
    watch->in_force = web_config_ref(in_force);
    watch->job = (struct worker_job){.run = watch_run, .done = watch_done};
    worker_submit(daemon->reload_worker, &watch->job);
}

struct web_watch *web_watch_create(struct daemon *daemon) {
    struct web_watch *watch = mem_zalloc(1, sizeof(*watch));
    watch->daemon = daemon;
    watch->timer.due_ns = clock_monotonic_ns() + WATCH_INTERVAL_NS;
    watch->timer.fire = watch_fire;
    loop_timer_add(daemon->loop, &watch->timer);
    return watch;
}

void web_watch_destroy(struct web_watch *watch) {
    if (watch == NULL) {
        return;
    }
    loop_timer_remove(watch->daemon->loop, &watch->timer);
    problems_finish(&watch->problems);
    web_config_unref(watch->fresh);
    web_config_unref(watch->in_force);
    free(watch->path);
    free(watch);
}
