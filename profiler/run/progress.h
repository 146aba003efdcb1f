#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/buf.h"

/* The latest values, for the progress line. NAN: unknown. */
struct run_live {
    double fps;
    double cpu_seconds; /* used so far */
    double cpu_ratio;   /* of one core, since the previous sample */
    double memory_bytes;
    double gpu_ratio;
    double watts;
    double celsius; /* the hottest zone */
};

#define RUN_LIVE_NONE ((struct run_live){NAN, NAN, NAN, NAN, NAN, NAN, NAN})

/* One line on a terminal that shows the progress; nothing without a terminal. */
struct run_progress {
    bool on;
    const char *target;
    unsigned run, n_runs;
    const char *phase;
    int64_t phase_ns; /* begin of the phase */
    int64_t shown_ns;
};

/* Shows the values, at most a few times a second. */
void run_progress_show(struct run_progress *progress, const struct run_live *live, int64_t now_ns);

/* Clears the line before other output. */
void run_progress_clear(struct run_progress *progress);

/* The text of the line: "cpu 2/5  run  12.3 s  29.7 fps  CPU 145 %  312 MiB  GPU 67 %  8.2 W". */
void run_progress_format(const struct run_progress *progress, const struct run_live *live,
                         int64_t now_ns, struct buf *out);
