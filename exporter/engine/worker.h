#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectors/collector.h"
#include "exporter/loop/loop.h"
#include "exporter/metrics/exposition.h"

/* The thread of one collector. It opens the collector, probes again while the source is absent,
 * samples at its rate and collects on request; no other thread calls the collector. If a call never
 * returns, only this thread is lost. */
struct engine_worker;

enum engine_worker_state {
    ENGINE_WORKER_OPENING,
    ENGINE_WORKER_OPEN,
    ENGINE_WORKER_ABSENT, /* this machine has no such source */
    ENGINE_WORKER_FAILED, /* opening it failed */
};

struct engine_worker_config {
    const struct collector *collector;
    struct collector_env env; /* paths and settings; must outlive the worker */
    int64_t sample_interval_ns;
    int64_t reprobe_interval_ns;
    struct loop *loop;
    /* Called on the loop when a collection is over; the result stays readable until the next
     * engine_worker_start. */
    void (*finished)(struct engine_worker *worker, void *context);
    void *context;
};

struct engine_result {
    int code;                     /* 0, or the negative errno of open or collect */
    struct error error;           /* if code < 0 */
    struct exposition_part *part; /* NULL: none */
    uint64_t duplicates;          /* series dropped in it */
    double duration_seconds;
    double finished_wall_seconds;
};

int engine_worker_create(const struct engine_worker_config *config,
                         struct engine_worker **ret_worker, struct error *err);

/* Starts one collection; not to be called again before it has finished. */
void engine_worker_start(struct engine_worker *worker);

/* The latest result; on the loop thread, between finish and the next start. */
struct engine_result *engine_worker_result(struct engine_worker *worker);

enum engine_worker_state engine_worker_state(const struct engine_worker *worker);

/* Makes the thread end; does not wait. */
void engine_worker_quit(struct engine_worker *worker);

/* Waits up to `timeout_ms` for the thread to end and frees the worker. False if the thread hangs in
 * its collector: it goes on, with all its memory. */
bool engine_worker_destroy(struct engine_worker *worker, int64_t timeout_ms);
