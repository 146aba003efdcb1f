#include "collectors/source/peak.h"

#include <math.h>

#include "exporter/core/cleanup.h"

enum { N_SLOTS = PEAK_N_SLOTS + 1 }; /* the oldest one is only partly in the window */

static void clear(struct peak *peak) {
    for (size_t i = 0; i < ARRAY_LEN(peak->slots); i++) {
        peak->slots[i] = -INFINITY;
    }
}

/* Empties the slots that the window has left. */
static void advance(struct peak *peak, int64_t now_ns) {
    int64_t slot = now_ns / peak->slot_ns;
    if (slot - peak->newest >= N_SLOTS) {
        clear(peak);
        peak->newest = slot;
    }
    while (peak->newest < slot) {
        peak->newest++;
        peak->slots[peak->newest % N_SLOTS] = -INFINITY;
    }
}

void peak_init(struct peak *peak, int64_t window_ns) {
    peak->slot_ns = window_ns / PEAK_N_SLOTS > 0 ? window_ns / PEAK_N_SLOTS : 1;
    peak->newest = 0;
    clear(peak);
}

void peak_add(struct peak *peak, int64_t now_ns, double value) {
    advance(peak, now_ns);
    double *slot = &peak->slots[peak->newest % N_SLOTS];
    *slot = value > *slot ? value : *slot;
}

bool peak_get(struct peak *peak, int64_t now_ns, double *ret_value) {
    advance(peak, now_ns);
    double largest = -INFINITY;
    for (size_t i = 0; i < ARRAY_LEN(peak->slots); i++) {
        largest = peak->slots[i] > largest ? peak->slots[i] : largest;
    }
    if (isinf(largest)) {
        return false;
    }
    *ret_value = largest;
    return true;
}
