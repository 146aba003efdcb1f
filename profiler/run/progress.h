#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/buf.h"

/* The latest figures, for the line of progress. NAN: not known. */
struct run_live {
    double fps;
    double cpu_seconds; /* used so far */
    double cpu_ratio;   /* of one core, since the sample before */
    double memory_bytes;
    double gpu_ratio;
    double watts;
    double celsius; /* the hottest zone */
};

#define RUN_LIVE_NONE ((struct run_live){NAN, NAN, NAN, NAN, NAN, NAN, NAN})

/* One line on a terminal that tells how it goes; nothing where there is none. */
struct run_progress {
    bool on;
    const char *target;
    unsigned run, n_runs;
    const char *phase;
    int64_t phase_ns; /* when that began */
    int64_t shown_ns;
};

void run_progress_init(struct run_progress *progress);

/* Shows the figures, a few times a second at most. */
void run_progress_show(struct run_progress *progress, const struct run_live *live, int64_t now_ns);

/* Wipes the line, for what else is to be printed. */
void run_progress_clear(struct run_progress *progress);

/* The text of the line: "cpu 2/5  run  12.3 s  29.7 fps  CPU 145 %  312 MiB  GPU 67 %  8.2 W". */
void run_progress_format(const struct run_progress *progress, const struct run_live *live,
                         int64_t now_ns, struct buf *out);
