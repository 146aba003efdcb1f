#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/error.h"

/* Starts a thread with all signals blocked (the loop takes them), a small stack and a name that
 * `top -H` shows. */
int thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *context,
                 struct error *err);

/* Waits for a thread's end; after `timeout_ms` it is detached instead and false returned: its
 * memory must then be left alone. */
bool thread_join(pthread_t thread, int64_t timeout_ms);
