#pragma once

#include "exporter/metrics/exposition.h"

/* The process_* metrics that all Prometheus clients have. */

/* All descriptions, NULL-terminated. */
extern const struct metric_desc *const process_metrics_all[];

/* Reads /proc/self; values that cannot be read are left out. */
struct exposition_part *process_metrics_part(void);
