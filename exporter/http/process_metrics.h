#pragma once

#include "exporter/metrics/exposition.h"

/* What this process uses, under the names all Prometheus clients have for it: process_*. */

/* All descriptions, NULL-terminated. */
extern const struct metric_desc *const process_metrics_all[];

/* Reads /proc/self. What cannot be read is left out. NULL when memory is out. */
struct exposition_part *process_metrics_part(void);
