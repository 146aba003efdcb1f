#include "exporter/engine_worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exporter/core/clock.h"
#include "exporter/core/container.h"
#include "exporter/core/log.h"
#include "exporter/thread.h"

struct engine_worker {
    struct engine_worker_config config;
    const struct collector *collector;
    pthread_t thread;
    atomic_int state; /* enum engine_worker_state */

    pthread_mutex_t lock; /* guards the next two */
    bool start;
    bool quit;
    pthread_cond_t changed;

    /* The thread's own. */
    void *collector_state;
    struct snapshot snapshot;
    struct exposition_renderer renderer;
    int64_t next_sample_ns;
    int64_t next_probe_ns;
    struct error open_error;
    int open_code;

    /* Written by the thread during a collection, read by the loop between collections. */
    struct engine_result result;
    struct loop_message finished;
};

static enum engine_worker_state state_of_code(int code) {
    return code == 0         ? ENGINE_WORKER_OPEN
           : code == -ENODEV ? ENGINE_WORKER_ABSENT
                             : ENGINE_WORKER_FAILED;
}

/* One line per change of state, not per attempt. */
static void log_open(const struct engine_worker *worker, enum engine_worker_state before) {
    const char *name = worker->collector->name;
    enum engine_worker_state state = state_of_code(worker->open_code);
    if (state == before) {
        return;
    }
    if (state == ENGINE_WORKER_OPEN) {
        log_info("%s: collecting", name);
    } else if (state == ENGINE_WORKER_ABSENT) {
        log_info("%s: left out: %s", name, worker->open_error.text);
    } else {
        log_warn("%s: %s", name, worker->open_error.text);
    }
}

/* A collector should say what went wrong; where it does not, its code has to do. */
static void word_failure(struct error *error, int code) {
    if (code < 0 && error->text[0] == '\0') {
        error_set(error, code, "%s", strerror(-code));
    }
}

static void open_collector(struct engine_worker *worker) {
    enum engine_worker_state before = (enum engine_worker_state)atomic_load(&worker->state);
    const struct collector *collector = worker->collector;
    worker->open_error.text[0] = '\0';
    worker->open_code =
        collector->open(&worker->config.env, &worker->collector_state, &worker->open_error);
    word_failure(&worker->open_error, worker->open_code);
    log_open(worker, before);
    atomic_store(&worker->state, state_of_code(worker->open_code));
    int64_t now_ns = clock_monotonic_ns();
    worker->next_probe_ns = now_ns + worker->config.reprobe_interval_ns;
    worker->next_sample_ns = now_ns + worker->config.sample_interval_ns;
}

/* The source is gone (a card unplugged, a driver unloaded): from here on it is looked for again. */
static void close_vanished(struct engine_worker *worker, const struct error *error) {
    worker->collector->close(TAKE(worker->collector_state));
    worker->open_code = -ENODEV;
    worker->open_error = *error;
    log_open(worker, ENGINE_WORKER_OPEN);
    atomic_store(&worker->state, ENGINE_WORKER_ABSENT);
    worker->next_probe_ns = clock_monotonic_ns() + worker->config.reprobe_interval_ns;
}

static void collect(struct engine_worker *worker) {
    struct engine_result *result = &worker->result;
    int64_t start_ns = clock_monotonic_ns();
    result->error.text[0] = '\0';
    result->duplicates = 0;
    result->code = worker->open_code;
    if (worker->open_code < 0) {
        result->error = worker->open_error;
    } else {
        snapshot_reset(&worker->snapshot);
        result->code =
            worker->collector->collect(worker->collector_state, &worker->snapshot, &result->error);
        result->code = result->code == -ENODATA ? 0 : result->code;
        result->part = exposition_render(&worker->renderer, &worker->snapshot, &result->duplicates);
        if (result->part == NULL) {
            result->code = error_set(&result->error, -ENOMEM, "out of memory");
        }
        word_failure(&result->error, result->code);
        if (result->code == -ENODEV) {
            close_vanished(worker, &result->error);
        }
    }
    result->duration_seconds = (double)(clock_monotonic_ns() - start_ns) / 1e9;
    result->finished_wall_seconds = clock_wall_seconds();
    loop_post(worker->config.loop, &worker->finished);
}

static void deliver_finished(struct loop_message *message) {
    struct engine_worker *worker = CONTAINER_OF(message, struct engine_worker, finished);
    worker->config.finished(worker, worker->config.context);
}

static int64_t next_due_ns(const struct engine_worker *worker) {
    if (worker->open_code < 0) {
        return worker->next_probe_ns;
    }
    return worker->collector->sample != NULL ? worker->next_sample_ns : LOOP_NEVER;
}

enum wake { WAKE_QUIT, WAKE_COLLECT, WAKE_DUE };

static enum wake wait_for_work(struct engine_worker *worker) {
    int64_t due_ns = next_due_ns(worker);
    struct timespec until = {
        .tv_sec = due_ns / CLOCK_NS_PER_SEC,
        .tv_nsec = due_ns % CLOCK_NS_PER_SEC,
    };
    pthread_mutex_lock(&worker->lock);
    int timed_out = 0;
    while (!worker->start && !worker->quit && timed_out == 0) {
        if (due_ns == LOOP_NEVER) {
            pthread_cond_wait(&worker->changed, &worker->lock);
        } else {
            timed_out = pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
        }
    }
    bool start = worker->start;
    enum wake wake = worker->quit ? WAKE_QUIT : start ? WAKE_COLLECT : WAKE_DUE;
    worker->start = false;
    pthread_mutex_unlock(&worker->lock);
    if (wake == WAKE_QUIT && start) { /* whoever started it waits for the message */
        loop_post(worker->config.loop, &worker->finished);
    }
    return wake;
}

static void sample(struct engine_worker *worker) {
    worker->collector->sample(worker->collector_state);
    worker->next_sample_ns += worker->config.sample_interval_ns;
    int64_t now_ns = clock_monotonic_ns();
    if (worker->next_sample_ns < now_ns) { /* fell behind: do not catch up in a burst */
        worker->next_sample_ns = now_ns + worker->config.sample_interval_ns;
    }
}

static void *worker_main(void *context) {
    struct engine_worker *worker = context;
    open_collector(worker);
    enum wake wake;
    while ((wake = wait_for_work(worker)) != WAKE_QUIT) {
        if (wake == WAKE_COLLECT) {
            collect(worker);
        } else if (worker->open_code < 0) {
            open_collector(worker);
        } else {
            sample(worker);
        }
    }
    if (worker->open_code == 0) {
        worker->collector->close(worker->collector_state);
    }
    return NULL;
}

int engine_worker_create(const struct engine_worker_config *config,
                         struct engine_worker **ret_worker, struct error *err) {
    struct engine_worker *worker = calloc(1, sizeof(*worker));
    if (worker == NULL) {
        return error_set(err, -ENOMEM, "%s: out of memory", config->collector->name);
    }
    worker->config = *config;
    worker->collector = config->collector;
    worker->open_code = -ENODEV;
    worker->finished.deliver = deliver_finished;
    atomic_init(&worker->state, ENGINE_WORKER_OPENING);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    int r = thread_start(&worker->thread, config->collector->name, worker_main, worker, err);
    if (r < 0) {
        free(worker);
        return r;
    }
    *ret_worker = worker;
    return 0;
}

void engine_worker_start(struct engine_worker *worker) {
    exposition_part_unref(TAKE(worker->result.part));
    pthread_mutex_lock(&worker->lock);
    worker->start = true;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

struct engine_result *engine_worker_result(struct engine_worker *worker) {
    return &worker->result;
}

enum engine_worker_state engine_worker_state(const struct engine_worker *worker) {
    return (enum engine_worker_state)atomic_load(&worker->state);
}

void engine_worker_quit(struct engine_worker *worker) {
    pthread_mutex_lock(&worker->lock);
    worker->quit = true;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

bool engine_worker_destroy(struct engine_worker *worker, int64_t timeout_ms) {
    if (!thread_join(worker->thread, timeout_ms)) {
        return false;
    }
    loop_cancel(worker->config.loop, &worker->finished);
    exposition_part_unref(worker->result.part);
    snapshot_finish(&worker->snapshot);
    exposition_renderer_finish(&worker->renderer);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
    return true;
}
