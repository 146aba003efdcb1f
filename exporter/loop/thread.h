#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/error.h"

/* Starts a thread with all signals blocked (the loop takes them), a small stack and a name that
 * `top -H` shows. */
int thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *context,
                 struct error *err);

/* Waits up to `timeout_ms` for a thread's end. False: it still runs, what it uses must be left
 * alone, and the call may be repeated. */
bool thread_join(pthread_t thread, int64_t timeout_ms);
