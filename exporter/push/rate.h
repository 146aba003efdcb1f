#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The mean increase per second over the last ten seconds, from totals noted about once a second. A
 * zeroed struct has none. */

enum { PUSH_RATE_POINTS = 12, PUSH_RATE_WINDOW_MS = 10000 };

struct push_rate {
    struct push_rate_point {
        int64_t time_ms;
        double total;
    } points[PUSH_RATE_POINTS], last; /* a ring; and the latest total */
    size_t n_points;
    size_t newest;
};

/* Notes the new total. The first one only begins the count, as its duration is unknown. */
void push_rate_note(struct push_rate *rate, int64_t now_ms, double total);

/* The mean until `now_ms`. False within the first second. */
bool push_rate_mean(const struct push_rate *rate, int64_t now_ms, double *ret_mean);
