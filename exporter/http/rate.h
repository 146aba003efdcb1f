#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporter/http/web_config.h"

/* How many requests may come, as a bucket of tokens kept as one moment in time: that at which all
 * requests let in so far would have come, one per interval. A zeroed struct is a full bucket. */
struct http_rate {
    int64_t due_ns;
};

/* Whether one more request may come at `now_ns`; if so it counts. */
bool http_rate_allow(struct http_rate *rate, struct web_config_rate_limit limit, int64_t now_ns);
