#pragma once

#include "collectors/cgroup/parse.h"
#include "exporter/metrics/metric.h"
#include "exporter/metrics/snapshot.h"

/* The metrics of containers, with cAdvisor's names and meaning. */
enum container_metric {
    CONTAINER_CPU_USAGE,
    CONTAINER_CPU_PEAK,
    CONTAINER_MEMORY_WORKING_SET,
    CONTAINER_MEMORY_FAILURES,
    CONTAINER_FS_READS_BYTES, /* of disks: in the order of enum cgroup_io_value */
    CONTAINER_FS_WRITES_BYTES,
    CONTAINER_FS_READS,
    CONTAINER_FS_WRITES,
    CONTAINER_NETWORK_RECEIVE_BYTES, /* of interfaces: in the order of /proc/net/dev */
    CONTAINER_NETWORK_RECEIVE_PACKETS,
    CONTAINER_NETWORK_RECEIVE_ERRORS,
    CONTAINER_NETWORK_RECEIVE_DROPPED,
    CONTAINER_NETWORK_TRANSMIT_BYTES,
    CONTAINER_NETWORK_TRANSMIT_PACKETS,
    CONTAINER_NETWORK_TRANSMIT_ERRORS,
    CONTAINER_NETWORK_TRANSMIT_DROPPED,
    CONTAINER_PROCESSES,
    CONTAINER_START_TIME,
    CONTAINER_LAST_SEEN,
    CONTAINER_ENERGY,
    CONTAINER_FINISHED,
    CONTAINER_FINISHED_CPU,
    CONTAINER_FINISHED_ENERGY,
    CONTAINER_FINISHED_LIFETIME,
    CONTAINER_FIRST_STATISTIC, /* those of the cgroup follow */
};

/* Ends in a nameless row. */
extern const struct metric_desc container_descs[];

/* A copy under names that begin with `prefix` instead of "container". */
struct metric_desc *container_metrics_create(const char *prefix);
void container_metrics_destroy(struct metric_desc *descs); /* accepts NULL */

/* Adds the statistics under the container's own labels; changes them into cAdvisor's terms. */
void container_metrics_add(const struct metric_desc *descs, struct cgroup_stats *stats,
                           const struct labels *labels, struct snapshot *out);
