#pragma once

#include <stdlib.h>
#include <time.h>

/* CPU seconds of this process. Benchmarks measure with it, as waiting for a busy machine is no work
 * of theirs, and print one line per result, its fields parted by tabs: what it is, our seconds and,
 * where there is something to compare with, the seconds of that and what it is. */
static inline double stopwatch_cpu_seconds(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* How often to do it: `full` times; in the short form, which only shows that a benchmark works, a
 * hundredth of that and twice at least. */
static inline int stopwatch_count(int full) {
    int count = getenv("BENCH_SHORT") == NULL ? full : full / 100;
    return count < 2 ? 2 : count;
}
