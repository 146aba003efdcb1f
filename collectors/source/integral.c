#include "collectors/source/integral.h"

void integral_add(struct integral *integral, int64_t now_ns, double value, int64_t max_gap_ns) {
    int64_t gap_ns = now_ns - integral->at_ns;
    double counted = value > 0 ? value : 0;
    if (integral->running && gap_ns > 0 && gap_ns <= max_gap_ns) {
        double seconds = (double)gap_ns / 1e9;
        integral->total += (integral->value + counted) / 2 * seconds;
        integral->seconds += seconds;
    }
    integral->value = counted;
    integral->at_ns = now_ns;
    integral->running = true;
}

void integral_break(struct integral *integral) {
    integral->running = false;
}
