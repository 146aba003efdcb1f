#pragma once

#include <stdbool.h>
#include <time.h>

/* How a unit test waits: for a condition. No test passes or fails by how long something took. */

/* Against hangs only. */
enum { WAIT_LIMIT_S = 60 };

/* The rate at which a client acts, or a delay that a fake adds; nothing is decided by it. */
static inline void pace_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static inline double waiting_seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Asks again and again; false if the condition never holds. */
#define BECOMES_TRUE(condition)                                                                    \
    ({                                                                                             \
        double until_ = waiting_seconds(CLOCK_MONOTONIC) + WAIT_LIMIT_S;                           \
        bool holds_;                                                                               \
        while (!(holds_ = (condition)) && waiting_seconds(CLOCK_MONOTONIC) < until_) {             \
            pace_ms(1);                                                                            \
        }                                                                                          \
        holds_;                                                                                    \
    })

/* Whether this process hardly computes for a moment; one that polls without a pause never does. */
static inline bool is_resting(void) {
    double before = waiting_seconds(CLOCK_PROCESS_CPUTIME_ID);
    pace_ms(300);
    return waiting_seconds(CLOCK_PROCESS_CPUTIME_ID) - before < 0.03;
}
