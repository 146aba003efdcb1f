#include "collectors/container/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

#define OWN "id, name, image, container, namespace, pod, container_label_*"

#define COUNTER(id, name, help) [id] = {"container_" name "_total", help, METRIC_COUNTER, NULL, OWN}
#define COUNTER_BY(id, name, help, by)                                                             \
    [id] = {"container_" name "_total", help, METRIC_COUNTER, NULL, OWN ", " by}
#define BYTES_BY(id, name, help, by)                                                               \
    [id] = {"container_" name "_bytes_total", help, METRIC_COUNTER, "bytes", OWN ", " by}
#define SECONDS(id, name, help)                                                                    \
    [id] = {"container_" name "_seconds_total", help, METRIC_COUNTER, "seconds", OWN}
#define GAUGE(id, name, help) [id] = {"container_" name, help, METRIC_GAUGE, NULL, OWN}
#define GAUGE_IN(id, name, help, unit)                                                             \
    [id] = {"container_" name "_" unit, help, METRIC_GAUGE, unit, OWN}
#define FINISHED(id, name, help)                                                                   \
    [id] = {"container_finished" name "_total", help, METRIC_COUNTER, NULL, "image"}
#define FINISHED_SECONDS(id, name, help)                                                           \
    [id] = {"container_finished" name "_seconds_total", help, METRIC_COUNTER, "seconds", "image"}

const struct metric_desc container_descs[CONTAINER_N_METRICS + 1] = {
    [CONTAINER_CPU_USAGE] = {"container_cpu_usage_seconds_total", "CPU time used.", METRIC_COUNTER,
                             "seconds", OWN ", cpu"},
    SECONDS(CONTAINER_CPU_USER, "cpu_user", "CPU time used in user mode."),
    SECONDS(CONTAINER_CPU_SYSTEM, "cpu_system", "CPU time used in the kernel."),
    GAUGE_IN(CONTAINER_CPU_PEAK, "cpu_usage_peak",
             "Highest CPU usage of any sample within sample.peak-window.", "cores"),
    COUNTER(CONTAINER_CPU_PERIODS, "cpu_cfs_periods",
            "Periods of the CPU quota that have elapsed."),
    COUNTER(CONTAINER_CPU_THROTTLED_PERIODS, "cpu_cfs_throttled_periods",
            "Periods in which the CPU quota was exhausted."),
    SECONDS(CONTAINER_CPU_THROTTLED, "cpu_cfs_throttled",
            "Time that the CPU quota throttled tasks, summed over CPUs."),
    COUNTER(CONTAINER_CPU_BURSTS, "cpu_cfs_burst_periods",
            "Periods with a burst above the CPU quota."),
    SECONDS(CONTAINER_CPU_BURST, "cpu_cfs_burst", "CPU time used above the quota in bursts."),
    GAUGE_IN(CONTAINER_MEMORY_USAGE, "memory_usage",
             "Memory usage, including page cache and kernel memory.", "bytes"),
    GAUGE_IN(CONTAINER_MEMORY_WORKING_SET, "memory_working_set",
             "Memory usage without inactive page cache.", "bytes"),
    GAUGE(CONTAINER_MEMORY_RSS, "memory_rss", "Anonymous memory in bytes."),
    GAUGE(CONTAINER_MEMORY_CACHE, "memory_cache",
          "Page cache in bytes, including tmpfs and shared memory."),
    GAUGE(CONTAINER_MEMORY_MAPPED_FILE, "memory_mapped_file", "Mapped page cache in bytes."),
    GAUGE(CONTAINER_MEMORY_SWAP, "memory_swap", "Swap usage in bytes."),
    GAUGE_IN(CONTAINER_MEMORY_MAX_USAGE, "memory_max_usage", "Highest memory usage so far.",
             "bytes"),
    GAUGE(CONTAINER_MEMORY_KERNEL, "memory_kernel_usage",
          "Kernel memory of the container in bytes."),
    /* A counter without _total, as in cAdvisor. */
    GAUGE(CONTAINER_MEMORY_FAILCNT, "memory_failcnt", "Times that the memory limit was hit."),
    COUNTER_BY(CONTAINER_MEMORY_FAILURES, "memory_failures", "Page faults, by kind.",
               "failure_type, scope"),
    GAUGE_IN(CONTAINER_MEMORY_ACTIVE_FILE, "memory_total_active_file",
             "Page cache that was used recently.", "bytes"),
    GAUGE_IN(CONTAINER_MEMORY_INACTIVE_FILE, "memory_total_inactive_file",
             "Page cache that was not used recently.", "bytes"),
    GAUGE_IN(CONTAINER_MEMORY_FILE_DIRTY, "memory_file_dirty",
             "Page cache that waits to be written.", "bytes"),
    GAUGE_IN(CONTAINER_MEMORY_FILE_WRITEBACK, "memory_file_writeback",
             "Page cache that is being written.", "bytes"),
    COUNTER(CONTAINER_MEMORY_EVENTS_HIGH, "memory_events_high",
            "Times that the high boundary throttled the container."),
    COUNTER(CONTAINER_MEMORY_EVENTS_MAX, "memory_events_max",
            "Times that the memory limit was about to be exceeded."),
    COUNTER(CONTAINER_MEMORY_PGSCAN, "memory_pgscan", "Pages scanned for reclaim."),
    COUNTER(CONTAINER_MEMORY_PGSTEAL, "memory_pgsteal", "Pages reclaimed."),
    COUNTER(CONTAINER_MEMORY_REFAULT_ANON, "memory_workingset_refault_anon",
            "Refaults of anonymous pages evicted shortly before."),
    COUNTER(CONTAINER_MEMORY_REFAULT_FILE, "memory_workingset_refault_file",
            "Refaults of file pages evicted shortly before."),
    COUNTER(CONTAINER_OOM_EVENTS, "oom_events", "Processes killed by the OOM killer."),
    SECONDS(CONTAINER_PRESSURE_CPU_WAITING, "pressure_cpu_waiting",
            "Time during which some task waited for a CPU."),
    SECONDS(CONTAINER_PRESSURE_CPU_STALLED, "pressure_cpu_stalled",
            "Time during which every task waited for a CPU."),
    SECONDS(CONTAINER_PRESSURE_IO_WAITING, "pressure_io_waiting",
            "Time during which some task waited for input or output."),
    SECONDS(CONTAINER_PRESSURE_IO_STALLED, "pressure_io_stalled",
            "Time during which every task waited for input or output."),
    SECONDS(CONTAINER_PRESSURE_MEMORY_WAITING, "pressure_memory_waiting",
            "Time during which some task waited for memory."),
    SECONDS(CONTAINER_PRESSURE_MEMORY_STALLED, "pressure_memory_stalled",
            "Time during which every task waited for memory."),
    BYTES_BY(CONTAINER_FS_READS_BYTES, "fs_reads", "Bytes read from the disk.", "device"),
    BYTES_BY(CONTAINER_FS_WRITES_BYTES, "fs_writes", "Bytes written to the disk.", "device"),
    COUNTER_BY(CONTAINER_FS_READS, "fs_reads", "Read requests.", "device"),
    COUNTER_BY(CONTAINER_FS_WRITES, "fs_writes", "Write requests.", "device"),
    BYTES_BY(CONTAINER_NETWORK_RECEIVE_BYTES, "network_receive", "Bytes received.", "interface"),
    COUNTER_BY(CONTAINER_NETWORK_RECEIVE_PACKETS, "network_receive_packets", "Packets received.",
               "interface"),
    COUNTER_BY(CONTAINER_NETWORK_RECEIVE_ERRORS, "network_receive_errors",
               "Errors while receiving.", "interface"),
    COUNTER_BY(CONTAINER_NETWORK_RECEIVE_DROPPED, "network_receive_packets_dropped",
               "Packets dropped while receiving.", "interface"),
    BYTES_BY(CONTAINER_NETWORK_TRANSMIT_BYTES, "network_transmit", "Bytes sent.", "interface"),
    COUNTER_BY(CONTAINER_NETWORK_TRANSMIT_PACKETS, "network_transmit_packets", "Packets sent.",
               "interface"),
    COUNTER_BY(CONTAINER_NETWORK_TRANSMIT_ERRORS, "network_transmit_errors",
               "Errors while transmitting.", "interface"),
    COUNTER_BY(CONTAINER_NETWORK_TRANSMIT_DROPPED, "network_transmit_packets_dropped",
               "Packets dropped while transmitting.", "interface"),
    GAUGE(CONTAINER_PROCESSES, "processes", "Processes."),
    GAUGE(CONTAINER_THREADS, "threads", "Threads of all processes."),
    GAUGE(CONTAINER_THREADS_MAX, "threads_max", "Limit of threads; 0 if there is none."),
    GAUGE_IN(CONTAINER_START_TIME, "start_time",
             "Start time of the container, in seconds since 1970.", "seconds"),
    GAUGE(CONTAINER_LAST_SEEN, "last_seen",
          "Time at which the container was last seen, in seconds since 1970."),
    GAUGE(CONTAINER_SPEC_CPU_QUOTA, "spec_cpu_quota",
          "CPU quota: microseconds of CPU time per period."),
    GAUGE(CONTAINER_SPEC_CPU_PERIOD, "spec_cpu_period",
          "Length of a CPU quota period in microseconds."),
    GAUGE(CONTAINER_SPEC_CPU_SHARES, "spec_cpu_shares",
          "Share of the CPU under contention; from cpu.weight on cgroup v2."),
    GAUGE_IN(CONTAINER_SPEC_MEMORY_LIMIT, "spec_memory_limit", "Memory limit; 0 if there is none.",
             "bytes"),
    GAUGE_IN(CONTAINER_SPEC_MEMORY_SWAP_LIMIT, "spec_memory_swap_limit",
             "Limit of swap (v1: of memory and swap); 0 if there is none.", "bytes"),
    GAUGE_IN(CONTAINER_SPEC_MEMORY_RESERVATION, "spec_memory_reservation_limit",
             "Memory reserved for the container; 0 if none is.", "bytes"),
    [CONTAINER_ENERGY] =
        {"container_energy_estimate_joules_total",
         "Estimated energy used by a container, or by none of them: idle and shared.",
         METRIC_COUNTER, "joules", OWN ", source"},
    FINISHED(CONTAINER_FINISHED, "", "Containers that have ended since the daemon started."),
    FINISHED_SECONDS(CONTAINER_FINISHED_CPU, "_cpu_usage",
                     "CPU time used by containers that have ended."),
    [CONTAINER_FINISHED_ENERGY] = {"container_finished_energy_estimate_joules_total",
                                   "Estimated energy used by containers that have ended.",
                                   METRIC_COUNTER, "joules", "image"},
    FINISHED_SECONDS(CONTAINER_FINISHED_LIFETIME, "_lifetime",
                     "Lifetime of containers that have ended."),
};

/* The value of a limit that is not set. */
enum unlimited { LEFT_OUT, ZERO };

static const struct {
    enum container_metric metric;
    enum cgroup_value value;
    enum unlimited unlimited;
} values[] = {
    {CONTAINER_CPU_USER, CGROUP_CPU_USER, LEFT_OUT},
    {CONTAINER_CPU_SYSTEM, CGROUP_CPU_SYSTEM, LEFT_OUT},
    {CONTAINER_MEMORY_USAGE, CGROUP_MEMORY_CURRENT, LEFT_OUT},
    {CONTAINER_MEMORY_RSS, CGROUP_MEMORY_ANON, LEFT_OUT},
    {CONTAINER_MEMORY_CACHE, CGROUP_MEMORY_FILE, LEFT_OUT},
    {CONTAINER_MEMORY_MAPPED_FILE, CGROUP_MEMORY_FILE_MAPPED, LEFT_OUT},
    {CONTAINER_MEMORY_SWAP, CGROUP_MEMORY_SWAP_CURRENT, LEFT_OUT},
    {CONTAINER_MEMORY_MAX_USAGE, CGROUP_MEMORY_PEAK, LEFT_OUT},
    {CONTAINER_MEMORY_KERNEL, CGROUP_MEMORY_KERNEL, LEFT_OUT},
    {CONTAINER_MEMORY_ACTIVE_FILE, CGROUP_MEMORY_ACTIVE_FILE, LEFT_OUT},
    {CONTAINER_MEMORY_INACTIVE_FILE, CGROUP_MEMORY_INACTIVE_FILE, LEFT_OUT},
    {CONTAINER_MEMORY_FILE_DIRTY, CGROUP_MEMORY_FILE_DIRTY, LEFT_OUT},
    {CONTAINER_MEMORY_FILE_WRITEBACK, CGROUP_MEMORY_FILE_WRITEBACK, LEFT_OUT},
    {CONTAINER_MEMORY_EVENTS_HIGH, CGROUP_MEMORY_EVENTS_HIGH, LEFT_OUT},
    {CONTAINER_MEMORY_EVENTS_MAX, CGROUP_MEMORY_EVENTS_MAX, LEFT_OUT},
    {CONTAINER_MEMORY_PGSCAN, CGROUP_MEMORY_PGSCAN, LEFT_OUT},
    {CONTAINER_MEMORY_PGSTEAL, CGROUP_MEMORY_PGSTEAL, LEFT_OUT},
    {CONTAINER_MEMORY_REFAULT_ANON, CGROUP_MEMORY_REFAULT_ANON, LEFT_OUT},
    {CONTAINER_MEMORY_REFAULT_FILE, CGROUP_MEMORY_REFAULT_FILE, LEFT_OUT},
    {CONTAINER_OOM_EVENTS, CGROUP_MEMORY_EVENTS_OOM_KILL, LEFT_OUT},
    {CONTAINER_PRESSURE_CPU_WAITING, CGROUP_PRESSURE_CPU_WAITING, LEFT_OUT},
    {CONTAINER_PRESSURE_CPU_STALLED, CGROUP_PRESSURE_CPU_STALLED, LEFT_OUT},
    {CONTAINER_PRESSURE_IO_WAITING, CGROUP_PRESSURE_IO_WAITING, LEFT_OUT},
    {CONTAINER_PRESSURE_IO_STALLED, CGROUP_PRESSURE_IO_STALLED, LEFT_OUT},
    {CONTAINER_PRESSURE_MEMORY_WAITING, CGROUP_PRESSURE_MEMORY_WAITING, LEFT_OUT},
    {CONTAINER_PRESSURE_MEMORY_STALLED, CGROUP_PRESSURE_MEMORY_STALLED, LEFT_OUT},
    {CONTAINER_THREADS, CGROUP_PIDS_CURRENT, LEFT_OUT},
    {CONTAINER_THREADS_MAX, CGROUP_PIDS_MAX, ZERO},
    {CONTAINER_SPEC_CPU_QUOTA, CGROUP_CPU_QUOTA_USEC, LEFT_OUT},
    {CONTAINER_SPEC_CPU_PERIOD, CGROUP_CPU_PERIOD_USEC, LEFT_OUT},
    {CONTAINER_SPEC_CPU_SHARES, CGROUP_CPU_SHARES, LEFT_OUT},
    {CONTAINER_SPEC_MEMORY_LIMIT, CGROUP_MEMORY_MAX, ZERO},
    {CONTAINER_SPEC_MEMORY_SWAP_LIMIT, CGROUP_MEMORY_SWAP_MAX, ZERO},
    {CONTAINER_SPEC_MEMORY_SWAP_LIMIT, CGROUP_MEMORY_MEMSW_MAX, ZERO},
    {CONTAINER_SPEC_MEMORY_RESERVATION, CGROUP_MEMORY_MIN, ZERO},
    {CONTAINER_SPEC_MEMORY_RESERVATION, CGROUP_MEMORY_SOFT_LIMIT, ZERO},
    {CONTAINER_MEMORY_FAILCNT, CGROUP_MEMORY_FAILCNT, LEFT_OUT},
};

/* Shown for containers with a quota only. */
static const struct {
    enum container_metric metric;
    enum cgroup_value value;
} quota_values[] = {
    {CONTAINER_CPU_PERIODS, CGROUP_CPU_PERIODS},
    {CONTAINER_CPU_THROTTLED_PERIODS, CGROUP_CPU_THROTTLED_PERIODS},
    {CONTAINER_CPU_THROTTLED, CGROUP_CPU_THROTTLED},
    {CONTAINER_CPU_BURSTS, CGROUP_CPU_BURSTS},
    {CONTAINER_CPU_BURST, CGROUP_CPU_BURST},
};

struct metric_desc *container_metrics_rename(const char *prefix) {
    struct metric_desc *descs = mem_zalloc(CONTAINER_N_METRICS, sizeof(*descs));
    for (size_t i = 0; i < CONTAINER_N_METRICS; i++) {
        struct buf name = {0};
        buf_add_str(&name, prefix);
        buf_add_str(&name, container_descs[i].name + strlen("container"));
        descs[i] = container_descs[i];
        descs[i].name = buf_take(&name);
    }
    return descs;
}

void container_metrics_destroy(struct metric_desc *descs) {
    for (size_t i = 0; descs != NULL && i < CONTAINER_N_METRICS; i++) {
        free((char *)descs[i].name);
    }
    free(descs);
}

static void add(struct snapshot *out, const struct metric_desc *desc, const struct labels *labels,
                double value) {
    if (isfinite(value)) {
        snapshot_add(out, desc, labels, value);
    }
}

/* cAdvisor's formula, rounded down as there. */
static double shares_of_weight(double weight) {
    return weight > 0 ? floor(2 + (weight - 1) * 262142 / 9999) : NAN;
}

void container_metrics_add(const struct metric_desc *descs, const struct cgroup_stats *stats,
                           const struct labels *labels, struct snapshot *out) {
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        double value = stats->values[values[i].value];
        bool unset = isinf(value) && values[i].unlimited == ZERO;
        add(out, &descs[values[i].metric], labels, unset ? 0 : value);
    }
    for (size_t i = 0;
         isfinite(stats->values[CGROUP_CPU_QUOTA_USEC]) && i < ARRAY_LEN(quota_values); i++) {
        add(out, &descs[quota_values[i].metric], labels, stats->values[quota_values[i].value]);
    }
    add(out, &descs[CONTAINER_MEMORY_WORKING_SET], labels, cgroup_stats_working_set(stats));
    add(out, &descs[CONTAINER_SPEC_CPU_SHARES], labels,
        shares_of_weight(stats->values[CGROUP_CPU_WEIGHT]));
    /* v1's failures are v2's events. */
    if (isnan(stats->values[CGROUP_MEMORY_FAILCNT])) {
        add(out, &descs[CONTAINER_MEMORY_FAILCNT], labels, stats->values[CGROUP_MEMORY_EVENTS_MAX]);
    }
}
