#include "exporter/loop/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/list.h"
#include "exporter/core/memory.h"

enum { LOOP_EVENTS = 64 };

/* Peers are promised 5 ms; the call under way comes on top. */
#define LONG_TURN_NS (2 * CLOCK_NS_PER_MS)

struct loop {
    int epoll_fd;
    bool stop;
    bool hurry;
    struct loop_timer *timers;
    struct loop_timer *next_timer; /* while timers fire: which may remove any */
    struct loop_pump *pumps;
    struct epoll_event events[LOOP_EVENTS];
    int n_events;
    unsigned n_long;  /* turns */
    int64_t begin_ns; /* of the turn under way */

    struct loop_source wake; /* an eventfd */
    pthread_mutex_t lock;    /* guards the messages */
    struct loop_message *first_message;
};

static struct loop_message *take_messages(struct loop *loop) {
    pthread_mutex_lock(&loop->lock);
    struct loop_message *messages = TAKE(loop->first_message);
    pthread_mutex_unlock(&loop->lock);
    return messages;
}

static void wake_ready(struct loop_source *source, uint32_t events) {
    (void)events;
    struct loop *loop = CONTAINER_OF(source, struct loop, wake);
    uint64_t count;
    ssize_t ignored = read(source->fd, &count, sizeof(count));
    (void)ignored;
    struct loop_message *message = take_messages(loop);
    while (message != NULL) {
        struct loop_message *next = message->next; /* delivering may free or reuse it */
        message->deliver(message);
        message = next;
    }
}

int loop_create(struct loop **ret_loop, struct error *err) {
    struct loop *loop = mem_zalloc(1, sizeof(*loop));
    pthread_mutex_init(&loop->lock, NULL);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->wake.ready = wake_ready;
    int r = 0;
    if (loop->epoll_fd < 0 || loop->wake.fd < 0) {
        r = error_set(err, -errno, "event loop: %m");
    } else {
        r = loop_add(loop, &loop->wake, EPOLLIN, err);
    }
    if (r < 0) {
        loop_destroy(loop);
        return r;
    }
    *ret_loop = loop;
    return 0;
}

void loop_destroy(struct loop *loop) {
    if (loop == NULL) {
        return;
    }
    cleanup_close(&loop->epoll_fd);
    cleanup_close(&loop->wake.fd);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

int loop_add(struct loop *loop, struct loop_source *source, uint32_t events, struct error *err) {
    struct epoll_event event = {.events = events, .data.ptr = source};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0) {
        return error_set(err, -errno, "event loop: watch descriptor %d: %m", source->fd);
    }
    return 0;
}

void loop_change(struct loop *loop, struct loop_source *source, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = source};
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event);
}

void loop_remove(struct loop *loop, struct loop_source *source) {
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    /* An event for it may already be in this turn's list. */
    for (int i = 0; i < loop->n_events; i++) {
        if (loop->events[i].data.ptr == source) {
            loop->events[i].data.ptr = NULL;
        }
    }
}

void loop_timer_add(struct loop *loop, struct loop_timer *timer) {
    timer->next = loop->timers;
    loop->timers = timer;
}

void loop_timer_remove(struct loop *loop, struct loop_timer *timer) {
    struct loop_timer **link = LIST_LINK(&loop->timers, timer, next);
    if (loop->next_timer == timer) {
        loop->next_timer = timer->next;
    }
    if (*link != NULL) {
        *link = timer->next;
    }
}

void loop_pump_add(struct loop *loop, struct loop_pump *pump) {
    pump->next = loop->pumps;
    loop->pumps = pump;
}

void loop_pump_remove(struct loop *loop, struct loop_pump *pump) {
    struct loop_pump **link = LIST_LINK(&loop->pumps, pump, next);
    if (*link != NULL) {
        *link = pump->next;
    }
}

void loop_post(struct loop *loop, struct loop_message *message) {
    message->next = NULL;
    pthread_mutex_lock(&loop->lock);
    bool is_first = loop->first_message == NULL;
    *LIST_LINK(&loop->first_message, NULL, next) = message;
    pthread_mutex_unlock(&loop->lock);
    if (!is_first) {
        return; /* the loop has been woken and will find this one, too */
    }
    uint64_t one = 1;
    ssize_t ignored = write(loop->wake.fd, &one, sizeof(one));
    (void)ignored;
}

void loop_cancel(struct loop *loop, struct loop_message *message) {
    pthread_mutex_lock(&loop->lock);
    struct loop_message **link = LIST_LINK(&loop->first_message, message, next);
    if (*link != NULL) {
        *link = message->next;
    }
    pthread_mutex_unlock(&loop->lock);
}

static int64_t shorter(int64_t a_ms, int64_t b_ms) {
    return a_ms < 0 ? b_ms : b_ms < 0 || a_ms < b_ms ? a_ms : b_ms;
}

static int64_t wait_ms(const struct loop *loop) {
    int64_t first_ns = LOOP_NEVER;
    for (const struct loop_timer *timer = loop->timers; timer != NULL; timer = timer->next) {
        first_ns = timer->due_ns < first_ns ? timer->due_ns : first_ns;
    }
    int64_t wait = -1;
    if (first_ns != LOOP_NEVER) {
        int64_t left_ns = first_ns - clock_monotonic_ns();
        wait = left_ns <= 0 ? 0 : (left_ns + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
    }
    for (struct loop_pump *pump = loop->pumps; pump != NULL; pump = pump->next) {
        wait = shorter(wait, pump->timeout_ms(pump));
    }
    return wait;
}

static void fire_timers(struct loop *loop) {
    int64_t now_ns = clock_monotonic_ns();
    for (struct loop_timer *timer = loop->timers; timer != NULL; timer = loop->next_timer) {
        loop->next_timer = timer->next;
        if (timer->due_ns <= now_ns) {
            timer->due_ns = LOOP_NEVER;
            timer->fire(timer);
        }
    }
}

void loop_turn(struct loop *loop, int64_t timeout_ms) {
    enum { WAIT_MAX_MS = 60 * 1000 };
    int64_t wait = loop->hurry ? 0 : shorter(shorter(wait_ms(loop), timeout_ms), WAIT_MAX_MS);
    loop->hurry = false;
    int n = epoll_wait(loop->epoll_fd, loop->events, LOOP_EVENTS, (int)wait);
    loop->n_events = n < 0 ? 0 : n;
    loop->begin_ns = clock_monotonic_ns();
    /* A source that came late on a long turn comes earlier on the next. */
    for (unsigned i = 0, n_events = (unsigned)loop->n_events; i < n_events; i++) {
        const struct epoll_event *event = &loop->events[(loop->n_long + i) % n_events];
        struct loop_source *source = event->data.ptr;
        if (source != NULL) {
            source->ready(source, event->events);
        }
    }
    loop->n_events = 0;
    fire_timers(loop);
    for (struct loop_pump *pump = loop->pumps; pump != NULL; pump = pump->next) {
        pump->run(pump);
    }
    loop->n_long += loop_turn_is_long(loop) ? 1 : 0;
}

bool loop_turn_is_long(const struct loop *loop) {
    return clock_monotonic_ns() - loop->begin_ns > LONG_TURN_NS;
}

void loop_run(struct loop *loop) {
    loop->stop = false;
    while (!loop->stop) {
        loop_turn(loop, -1);
    }
}

void loop_hurry(struct loop *loop) {
    loop->hurry = true;
}

void loop_stop(struct loop *loop) {
    loop->stop = true;
}
