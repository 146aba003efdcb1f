#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/error.h"
#include "exporter/loop/loop.h"

/* One thread that runs, one after the other, the jobs that would stall the loop: building and
 * compressing pages, reading large pushes, checking passwords, reading configuration files. */
struct worker;

/* Embedded in its owner. `run` is called on the worker's thread, `done` then on the loop.
 * Without `done`, `run` may free the job. */
struct worker_job {
    void (*run)(struct worker_job *job);
    void (*done)(struct worker_job *job);
    struct loop_message message;
    struct worker_job *next;
};

int worker_create(struct loop *loop, const char *name, struct worker **ret_worker,
                  struct error *err);

/* Runs the queued jobs and frees the worker; calls of `done` are left to the loop. If a job does
 * not end within `timeout_ms`, it stays with its thread: returns false, the loop must stay, and the
 * process should leave by _exit. Accepts NULL. */
bool worker_destroy(struct worker *worker, int64_t timeout_ms);

/* Queues a job; on the loop thread. */
void worker_submit(struct worker *worker, struct worker_job *job);
