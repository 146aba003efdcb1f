#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The mean of a count per second over the last ten, from totals noted about once a second. A zeroed
 * struct has seen nothing. */

enum { PUSH_RATE_POINTS = 12, PUSH_RATE_WINDOW_MS = 10000 };

struct push_rate {
    struct push_rate_point {
        int64_t time_ms;
        double total;
    } points[PUSH_RATE_POINTS], last; /* a ring; and the last of all, since which nothing came */
    size_t n_points;
    size_t newest;
};

/* Notes what the total has become. The first total only begins the count: nobody knows since when
 * it was counted. */
void push_rate_note(struct push_rate *rate, int64_t now_ms, double total);

/* The mean until `now_ms`. False within the first second. */
bool push_rate_mean(const struct push_rate *rate, int64_t now_ms, double *ret_mean);
