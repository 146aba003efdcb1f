#pragma once

#include "exporter/metrics/metric.h"

/* A collector's metrics are one macro, `ROW(id, type, name, unit, labels, help)` for each: what the
 * enum of their ids and the table of their descriptions are made of. */
#define METRIC_LIST_ID(id, ...) id,
#define METRIC_LIST_DESC(id, type, name, unit, labels, help)                                       \
    [id] = {name, help, METRIC_##type, unit, labels},
