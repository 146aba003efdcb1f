#include "exporter/http/rate.h"

#include "exporter/core/clock.h"

bool http_rate_allow(struct http_rate *rate, struct web_config_rate_limit limit, int64_t now_ns) {
    if (limit.interval_ms == 0) {
        return true;
    }
    int64_t interval_ns = limit.interval_ms * CLOCK_NS_PER_MS;
    if (rate->due_ns > now_ns + (limit.burst - 1) * interval_ns) {
        return false;
    }
    rate->due_ns = (rate->due_ns > now_ns ? rate->due_ns : now_ns) + interval_ns;
    return true;
}
