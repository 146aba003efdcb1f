#pragma once

#include "collectors/cgroup/stats.h"
#include "exporter/metrics/metric.h"
#include "exporter/metrics/snapshot.h"

extern const struct metric_desc *const cgroup_metrics[];
extern const struct metric_desc cgroup_mode_metric;
extern const struct metric_desc cgroup_io_metrics[CGROUP_IO_N_VALUES];

/* Adds what the statistics hold but for the disks. */
void cgroup_metrics_add(const struct cgroup_stats *stats, const struct labels *labels,
                        struct snapshot *out);
