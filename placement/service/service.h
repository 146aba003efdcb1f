#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/error.h"
#include "exporter/http/server.h"
#include "exporter/loop/worker.h"
#include "exporter/metrics/snapshot.h"
#include "exporter/settings/flags.h"
#include "exporter/settings/problems.h"

/* A program with an event loop and the daemon's HTTP server: its addresses, limits, TLS, users and
 * logging, by the daemon's flags. It is the context of requests. */
struct service {
    struct loop *loop;
    struct config *config;
    struct flags flags; /* its settings are those of `config` */
    struct web_config *web_config;
    struct http_server *http;
    struct loop_source signals; /* a signalfd */
    const char *name;           /* for the log */
};

/* Reads the command line: by `options`, which end at a row without a name, and by the flags of the
 * server (--web.…, --log.…, --push.allow, --push.user), with the files that they name. It listens
 * at `default_address` unless a flag has another. -EINVAL with every mistake in `problems`. Finish
 * it in any case. */
int service_init(struct service *service, const char *name, const char *default_address,
                 const struct option *options, int argc, char **argv, struct problems *problems);

/* Creates the loop, handles SIGINT and SIGTERM. */
int service_open(struct service *service, struct error *err);

/* Starts to answer requests. */
int service_listen(struct service *service, const struct http_route *routes, size_t n_routes,
                   struct error *err);

/* Runs until a signal comes, then rejects requests that would have to wait with 503. */
void service_run(struct service *service);

/* Stops answering; the loop still exists. If requests are still running, or threads of the caller,
 * which then is not `clean`, the process exits with `code`. */
void service_close(struct service *service, bool clean, int code);
void service_finish(struct service *service);

/* A thread that does one thing again and again. If a round takes longer than the interval, the next
 * one is skipped. */
struct service_task {
    void (*run)(struct service_task *task);  /* on the thread */
    void (*done)(struct service_task *task); /* then on the loop */
    int64_t interval_ms;
    struct loop *loop;
    struct worker *worker;
    struct worker_job job;
    struct loop_timer timer;
    bool is_running;
};

/* Starts the first round at once. */
int service_task_start(struct service_task *task, struct loop *loop, const char *name,
                       struct error *err);

/* Waits for the current round, if there is one; false if that takes too long, so that the process
 * must leave by _exit. The task must live until service_close has returned. */
bool service_task_stop(struct service_task *task);

/* Answers with the given metrics and those of the process. */
void service_reply_metrics(struct http_request *request, const struct snapshot *snapshot);
