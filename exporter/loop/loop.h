#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/error.h"

/* The daemon's one event loop. Everything but the collectors, password checks and page building
 * runs here, one thing after the other, so that its data needs no lock. Only loop_post may
 * be called from another thread. The structs below are embedded in their owners. */
struct loop;

/* A file descriptor to watch; level-triggered. */
struct loop_source {
    int fd;
    void (*ready)(struct loop_source *source, uint32_t events);
};

/* A moment to wait for; INT64_MAX means not set. Zeroed but for `fire`, then loop_timer_add. */
struct loop_timer {
    int64_t due_ns; /* monotonic */
    void (*fire)(struct loop_timer *timer);
    struct loop_timer *next;
};

/* Runs after every turn and may shorten the wait: libmicrohttpd. */
struct loop_pump {
    int64_t (*timeout_ms)(struct loop_pump *pump); /* -1: any */
    void (*run)(struct loop_pump *pump);
    struct loop_pump *next;
};

/* A call that another thread requests on the loop. Must not be posted again before it ran. */
struct loop_message {
    void (*deliver)(struct loop_message *message);
    struct loop_message *next;
};

#define LOOP_NEVER INT64_MAX

int loop_create(struct loop **ret_loop, struct error *err);
void loop_destroy(struct loop *loop); /* accepts NULL */

int loop_add(struct loop *loop, struct loop_source *source, uint32_t events, struct error *err);
void loop_remove(struct loop *loop, struct loop_source *source);

/* Watches a source that was added for other events. */
void loop_change(struct loop *loop, struct loop_source *source, uint32_t events);

void loop_timer_add(struct loop *loop, struct loop_timer *timer);
void loop_timer_remove(struct loop *loop, struct loop_timer *timer);

void loop_pump_add(struct loop *loop, struct loop_pump *pump);
void loop_pump_remove(struct loop *loop, struct loop_pump *pump);

/* Hands a message to the loop thread and wakes it; from any thread. */
void loop_post(struct loop *loop, struct loop_message *message);

/* Takes back a message that has been posted but not delivered, if it is there: before its owner is
 * freed. */
void loop_cancel(struct loop *loop, struct loop_message *message);

/* Runs until loop_stop. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Whether the turn under way has taken as long as it should: other work is left to the next. */
bool loop_turn_is_long(const struct loop *loop);

/* The next turn does not wait: there is more to do. */
void loop_hurry(struct loop *loop);

/* One turn that waits at most `timeout_ms`: for an orderly end after loop_run has returned. */
void loop_turn(struct loop *loop, int64_t timeout_ms);
