#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The integral of a value over time, from samples: busy seconds from load, joules from watts.
 * Between two samples the value is interpolated (trapezoid). Negative values count as zero, so that
 * the integral is a counter. A zeroed struct is empty. */
struct integral {
    double total;   /* value times seconds */
    double seconds; /* that it covers */
    double value;   /* of the latest sample */
    int64_t at_ns;
    bool running; /* the time up to the next sample counts */
};

/* Adds a sample of the monotonic clock's time `now_ns`. If the previous one is
 * older than `max_gap_ns`, the time between them is not counted. */
void integral_add(struct integral *integral, int64_t now_ns, double value, int64_t max_gap_ns);

/* The value could not be read: the time until the next sample is not counted. */
void integral_break(struct integral *integral);
