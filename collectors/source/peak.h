#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PEAK_N_SLOTS = 60 };

/* The largest value within a time window, in bounded memory: the window has 60 slots, so a peak
 * lasts for the length of the window and up to one slot more. */
struct peak {
    int64_t slot_ns;
    int64_t newest;                 /* number of the current slot, counted since the clock's zero */
    double slots[PEAK_N_SLOTS + 1]; /* -INFINITY: no value */
};

void peak_init(struct peak *peak, int64_t window_ns);

/* Adds a sample of the monotonic clock's time `now_ns`, which never goes back. */
void peak_add(struct peak *peak, int64_t now_ns, double value);

/* The largest value of the window that ends at `now_ns`; false if there was none. */
bool peak_get(struct peak *peak, int64_t now_ns, double *ret_value);
