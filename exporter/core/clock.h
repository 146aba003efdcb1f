#pragma once

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_MS INT64_C(1000000)
#define CLOCK_NS_PER_SEC INT64_C(1000000000)

/* Nanoseconds of the monotonic clock: for durations and deadlines. */
static inline int64_t clock_monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * CLOCK_NS_PER_SEC + now.tv_nsec;
}

static inline double clock_seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Seconds since 1970: for what users see. */
static inline double clock_wall_seconds(void) {
    return clock_seconds(CLOCK_REALTIME);
}

/* The same by the kernel's tick, up to 10 ms behind: a file made later never has an earlier time.
 */
static inline double clock_file_seconds(void) {
    return clock_seconds(CLOCK_REALTIME_COARSE);
}
