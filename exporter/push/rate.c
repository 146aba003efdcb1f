#include "exporter/push/rate.h"

enum { POINT_INTERVAL_MS = 1000, MIN_SPAN_MS = 1000 };

static const struct push_rate_point *point(const struct push_rate *rate, size_t age) {
    return &rate->points[(rate->newest + PUSH_RATE_POINTS - age) % PUSH_RATE_POINTS];
}

void push_rate_note(struct push_rate *rate, int64_t now_ms, double total) {
    rate->last = (struct push_rate_point){now_ms, total};
    if (rate->n_points > 0 && now_ms - point(rate, 0)->time_ms < POINT_INTERVAL_MS) {
        return;
    }
    rate->newest = (rate->newest + 1) % PUSH_RATE_POINTS;
    rate->points[rate->newest] = rate->last;
    rate->n_points += rate->n_points < PUSH_RATE_POINTS ? 1 : 0;
}

/* The total at a moment between two points, as if it had grown evenly. */
static double between(const struct push_rate_point *from, const struct push_rate_point *to,
                      int64_t time_ms) {
    double part = (double)(time_ms - from->time_ms) / (double)(to->time_ms - from->time_ms);
    return from->total + part * (to->total - from->total);
}

bool push_rate_mean(const struct push_rate *rate, int64_t now_ms, double *ret_mean) {
    int64_t begin_ms = now_ms - PUSH_RATE_WINDOW_MS;
    const struct push_rate_point *later = &rate->last;
    if (rate->n_points > 0 && later->time_ms <= begin_ms) {
        *ret_mean = 0;
        return true;
    }
    for (size_t age = 0; age < rate->n_points; age++) {
        const struct push_rate_point *earlier = point(rate, age);
        if (earlier->time_ms <= begin_ms) {
            double total_then = between(earlier, later, begin_ms);
            *ret_mean = (rate->last.total - total_then) * 1e3 / PUSH_RATE_WINDOW_MS;
            return true;
        }
        later = earlier;
    }
    if (rate->n_points == 0 || now_ms - later->time_ms < MIN_SPAN_MS) {
        return false;
    }
    *ret_mean = (rate->last.total - later->total) * 1e3 / (double)(now_ms - later->time_ms);
    return true;
}
