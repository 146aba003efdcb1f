#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PEAK_N_SLOTS = 60 };

/* The largest value of the last so many seconds, in bounded memory: the window moves by slots of a
 * sixtieth of it, so a peak is seen for the length of the window and up to one slot more. */
struct peak {
    int64_t slot_ns;
    int64_t newest; /* number of the slot that is filled, counted since the clock's zero */
    double slots[PEAK_N_SLOTS + 1]; /* -INFINITY: no value */
};

void peak_init(struct peak *peak, int64_t window_ns);

/* Adds a sample of the monotonic clock's time `now_ns`, which never goes back. */
void peak_add(struct peak *peak, int64_t now_ns, double value);

/* The largest value of the window that ends at `now_ns`; false if there was none. */
bool peak_get(struct peak *peak, int64_t now_ns, double *ret_value);
