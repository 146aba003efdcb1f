#pragma once

#include <math.h>

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
