#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Guards the lists of metrics and parameters and all that the thread works with. Held for moments
 * only: never while waiting, never while calling the application. */
extern pthread_mutex_t waap_lock;

/* The thread runs, or could not be started; false in a forked child that has not recorded anything.
 */
extern atomic_bool waap_running;

/* Starts the thread where it does not run. Leaves errno alone. */
void waap_client_start(void);

/* Wakes the thread, or does nothing where there is none. Leaves errno alone. */
void waap_client_wake(void);

/* How many series there can be, once started; waap_lock is held. */
size_t waap_client_max_series(void);

/* What every record begins with: one load, unless the process has just forked. */
static inline void waap_client_ensure(void) {
    if (__builtin_expect(!atomic_load_explicit(&waap_running, memory_order_relaxed), false)) {
        waap_client_start();
    }
}
