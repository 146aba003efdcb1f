#include "exporter/engine/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/loop/thread.h"

struct engine_worker {
    struct engine_worker_config config;
    const struct collector *collector;
    pthread_t thread;
    atomic_int state; /* enum engine_worker_state */

    pthread_mutex_t lock; /* guards the next two */
    bool start;
    bool quit;
    int changed_fd; /* an eventfd: one of them was set */

    /* Used by the thread only. */
    void *collector_state;
    struct snapshot snapshot;
    struct exposition_renderer renderer;
    int64_t next_sample_ns;
    int64_t next_probe_ns;
    int wake_fd; /* the collector's; -1: none */
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

/* A collector that fails without a text gets that of its code. */
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
    bool wakes = worker->open_code == 0 && collector->wake_fd != NULL;
    worker->wake_fd = wakes ? collector->wake_fd(worker->collector_state) : -1;
    atomic_store(&worker->state, state_of_code(worker->open_code));
    int64_t now_ns = clock_monotonic_ns();
    worker->next_probe_ns = now_ns + worker->config.reprobe_interval_ns;
    worker->next_sample_ns = now_ns + worker->config.sample_interval_ns;
}

/* The source is gone (a card unplugged, a driver unloaded) and is probed again from now on. */
static void close_vanished(struct engine_worker *worker, const struct error *error) {
    worker->collector->close(TAKE(worker->collector_state));
    worker->wake_fd = -1;
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

enum work { WORK_QUIT, WORK_COLLECT, WORK_WAKE, WORK_DUE, WORK_NONE };

/* Waits until a flag is set, the collector's descriptor is readable or `due_ns` has come. */
static enum work wait_until(struct engine_worker *worker, int64_t due_ns) {
    int64_t left_ns = due_ns == LOOP_NEVER ? 0 : due_ns - clock_monotonic_ns();
    left_ns = left_ns > 0 ? left_ns : 0;
    struct timespec timeout = {
        .tv_sec = left_ns / CLOCK_NS_PER_SEC,
        .tv_nsec = left_ns % CLOCK_NS_PER_SEC,
    };
    struct pollfd fds[] = {
        {.fd = worker->changed_fd, .events = POLLIN},
        {.fd = worker->wake_fd, .events = POLLIN}, /* -1 is ignored */
    };
    int n = ppoll(fds, ARRAY_LEN(fds), due_ns == LOOP_NEVER ? NULL : &timeout, NULL);
    if (n == 0) {
        return WORK_DUE;
    }
    uint64_t count;
    if (n > 0 && fds[0].revents != 0 && read(worker->changed_fd, &count, sizeof(count)) > 0) {
        return WORK_NONE;
    }
    return n > 0 && fds[1].revents != 0 ? WORK_WAKE : WORK_NONE;
}

static enum work take_flags(struct engine_worker *worker) {
    pthread_mutex_lock(&worker->lock);
    bool start = worker->start;
    bool quit = worker->quit;
    worker->start = false;
    pthread_mutex_unlock(&worker->lock);
    if (quit && start) { /* the loop waits for the message */
        loop_post(worker->config.loop, &worker->finished);
    }
    return quit ? WORK_QUIT : start ? WORK_COLLECT : WORK_NONE;
}

static enum work wait_for_work(struct engine_worker *worker) {
    for (;;) {
        enum work work = take_flags(worker);
        /* A descriptor that is always readable must not prevent sampling. */
        int64_t due_ns = next_due_ns(worker);
        if (work == WORK_NONE && clock_monotonic_ns() >= due_ns) {
            work = WORK_DUE;
        }
        work = work == WORK_NONE ? wait_until(worker, due_ns) : work;
        if (work != WORK_NONE) {
            return work;
        }
    }
}

static void sample(struct engine_worker *worker) {
    worker->collector->sample(worker->collector_state);
    worker->next_sample_ns += worker->config.sample_interval_ns;
    int64_t now_ns = clock_monotonic_ns();
    if (worker->next_sample_ns < now_ns) { /* late: do not catch up in a burst */
        worker->next_sample_ns = now_ns + worker->config.sample_interval_ns;
    }
}

static void *worker_main(void *context) {
    struct engine_worker *worker = context;
    open_collector(worker);
    enum work work;
    while ((work = wait_for_work(worker)) != WORK_QUIT) {
        if (work == WORK_COLLECT) {
            collect(worker);
        } else if (work == WORK_WAKE) {
            worker->collector->wake(worker->collector_state);
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
    struct engine_worker *worker = mem_zalloc(1, sizeof(*worker));
    worker->config = *config;
    worker->collector = config->collector;
    worker->open_code = -ENODEV;
    worker->finished.deliver = deliver_finished;
    atomic_init(&worker->state, ENGINE_WORKER_OPENING);
    pthread_mutex_init(&worker->lock, NULL);
    worker->wake_fd = -1;
    worker->changed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (worker->changed_fd < 0) {
        int failure = error_set(err, -errno, "%s: eventfd: %m", config->collector->name);
        free(worker);
        return failure;
    }
    int r = thread_start(&worker->thread, config->collector->name, worker_main, worker, err);
    if (r < 0) {
        close(worker->changed_fd);
        free(worker);
        return r;
    }
    *ret_worker = worker;
    return 0;
}

static void set_flag(struct engine_worker *worker, bool *flag) {
    pthread_mutex_lock(&worker->lock);
    *flag = true;
    pthread_mutex_unlock(&worker->lock);
    eventfd_write(worker->changed_fd, 1);
}

void engine_worker_start(struct engine_worker *worker) {
    exposition_part_unref(TAKE(worker->result.part));
    set_flag(worker, &worker->start);
}

struct engine_result *engine_worker_result(struct engine_worker *worker) {
    return &worker->result;
}

enum engine_worker_state engine_worker_state(const struct engine_worker *worker) {
    return (enum engine_worker_state)atomic_load(&worker->state);
}

void engine_worker_quit(struct engine_worker *worker) {
    set_flag(worker, &worker->quit);
}

bool engine_worker_destroy(struct engine_worker *worker, int64_t timeout_ms) {
    if (!thread_join(worker->thread, timeout_ms)) {
        return false;
    }
    loop_cancel(worker->config.loop, &worker->finished);
    exposition_part_unref(worker->result.part);
    snapshot_finish(&worker->snapshot);
    exposition_renderer_finish(&worker->renderer);
    close(worker->changed_fd);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
    return true;
}
