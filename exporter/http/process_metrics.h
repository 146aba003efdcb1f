#pragma once

#include "exporter/metrics/exposition.h"

/* The process_* metrics that all Prometheus clients have. */

/* Their descriptions, ended by a nameless row. */
extern const struct metric_desc process_metrics[];

/* Reads /proc/self; values that cannot be read are left out. */
struct exposition_part *process_metrics_part(void);
