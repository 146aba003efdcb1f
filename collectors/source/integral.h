#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The integral of a value over time, from samples: busy seconds from load, joules from watts.
 * Between two samples the value is taken to run straight (trapezoid). What is below zero counts as
 * zero, so that the integral is a counter. A zeroed struct has seen nothing. */
struct integral {
    double total;   /* value times seconds */
    double seconds; /* the time that it covers */
    double value;   /* of the latest sample */
    int64_t at_ns;
    bool running; /* the latest sample may be joined to the next one */
};

/* Adds a sample of the monotonic clock's time `now_ns`. Where the one before is older than
 * `max_gap_ns` nobody knows what happened in between, and nothing is added. */
void integral_add(struct integral *integral, int64_t now_ns, double value, int64_t max_gap_ns);

/* Says that the value could not be read: what lies up to the next sample is not counted. */
void integral_break(struct integral *integral);
