#pragma once

#include "collectors/collector.h"

/* What plugins and other clients pushed, from the store in its environment. */
extern const struct collector push_collector;

/* Of groups that came the Pushgateway's way. */
extern const struct metric_desc push_time, push_failure_time;
