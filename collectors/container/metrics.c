#include "collectors/container/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

#define OWN "id, name, image, container, namespace, pod, container_label_*"

#define ROW(id, name, help, type, unit, labels)                                                    \
    [CONTAINER_##id] = {"container_" name, help, METRIC_##type, unit, labels}
#define DISK(id, name, unit, help)                                                                 \
    ROW(FS_##id, "fs_" name "_total", help, COUNTER, unit, OWN ", device")
#define NETWORK(id, name, unit, help)                                                              \
    ROW(NETWORK_##id, "network_" name "_total", help, COUNTER, unit, OWN ", interface")
#define FINISHED(id, name, unit, help)                                                             \
    ROW(id, "finished" name "_total", help, COUNTER, unit, "image")

/* Statistics of the cgroup, as translate() leaves them. memory_failcnt counts without _total, as in
 * cAdvisor. */
#define STATISTICS(COUNTER, SECONDS, GAUGE, BYTES)                                                 \
    SECONDS(CPU_USER, "cpu_user", "CPU time used in user mode.")                                   \
    SECONDS(CPU_SYSTEM, "cpu_system", "CPU time used in the kernel.")                              \
    COUNTER(CPU_PERIODS, "cpu_cfs_periods", "Periods of the CPU quota that have elapsed.")         \
    COUNTER(CPU_THROTTLED_PERIODS, "cpu_cfs_throttled_periods",                                    \
            "Periods in which the CPU quota was exhausted.")                                       \
    SECONDS(CPU_THROTTLED, "cpu_cfs_throttled",                                                    \
            "Time that the CPU quota throttled tasks, summed over CPUs.")                          \
    COUNTER(CPU_BURSTS, "cpu_cfs_burst_periods", "Periods with a burst above the CPU quota.")      \
    SECONDS(CPU_BURST, "cpu_cfs_burst", "CPU time used above the quota in bursts.")                \
    BYTES(MEMORY_CURRENT, "memory_usage", "Memory usage, including page cache and kernel memory.") \
    GAUGE(MEMORY_ANON, "memory_rss", "Anonymous memory in bytes.")                                 \
    GAUGE(MEMORY_FILE, "memory_cache", "Page cache in bytes, including tmpfs and shared memory.")  \
    GAUGE(MEMORY_FILE_MAPPED, "memory_mapped_file", "Mapped page cache in bytes.")                 \
    GAUGE(MEMORY_SWAP_CURRENT, "memory_swap", "Swap usage in bytes.")                              \
    BYTES(MEMORY_PEAK, "memory_max_usage", "Highest memory usage so far.")                         \
    GAUGE(MEMORY_KERNEL, "memory_kernel_usage", "Kernel memory of the container in bytes.")        \
    GAUGE(MEMORY_FAILCNT, "memory_failcnt", "Times that the memory limit was hit.")                \
    BYTES(MEMORY_ACTIVE_FILE, "memory_total_active_file", "Page cache that was used recently.")    \
    BYTES(MEMORY_INACTIVE_FILE, "memory_total_inactive_file",                                      \
          "Page cache that was not used recently.")                                                \
    BYTES(MEMORY_FILE_DIRTY, "memory_file_dirty", "Page cache that waits to be written.")          \
    BYTES(MEMORY_FILE_WRITEBACK, "memory_file_writeback", "Page cache that is being written.")     \
    COUNTER(MEMORY_EVENTS_HIGH, "memory_events_high",                                              \
            "Times that the high boundary throttled the container.")                               \
    COUNTER(MEMORY_EVENTS_MAX, "memory_events_max",                                                \
            "Times that the memory limit was about to be exceeded.")                               \
    COUNTER(MEMORY_PGSCAN, "memory_pgscan", "Pages scanned for reclaim.")                          \
    COUNTER(MEMORY_PGSTEAL, "memory_pgsteal", "Pages reclaimed.")                                  \
    COUNTER(MEMORY_REFAULT_ANON, "memory_workingset_refault_anon",                                 \
            "Refaults of anonymous pages evicted shortly before.")                                 \
    COUNTER(MEMORY_REFAULT_FILE, "memory_workingset_refault_file",                                 \
            "Refaults of file pages evicted shortly before.")                                      \
    COUNTER(MEMORY_EVENTS_OOM_KILL, "oom_events", "Processes killed by the OOM killer.")           \
    SECONDS(PRESSURE_CPU_WAITING, "pressure_cpu_waiting",                                          \
            "Time during which some task waited for a CPU.")                                       \
    SECONDS(PRESSURE_CPU_STALLED, "pressure_cpu_stalled",                                          \
            "Time during which every task waited for a CPU.")                                      \
    SECONDS(PRESSURE_IO_WAITING, "pressure_io_waiting",                                            \
            "Time during which some task waited for input or output.")                             \
    SECONDS(PRESSURE_IO_STALLED, "pressure_io_stalled",                                            \
            "Time during which every task waited for input or output.")                            \
    SECONDS(PRESSURE_MEMORY_WAITING, "pressure_memory_waiting",                                    \
            "Time during which some task waited for memory.")                                      \
    SECONDS(PRESSURE_MEMORY_STALLED, "pressure_memory_stalled",                                    \
            "Time during which every task waited for memory.")                                     \
    GAUGE(PIDS_CURRENT, "threads", "Threads of all processes.")                                    \
    GAUGE(PIDS_MAX, "threads_max", "Limit of threads; 0 if there is none.")                        \
    GAUGE(CPU_QUOTA_USEC, "spec_cpu_quota", "CPU quota: microseconds of CPU time per period.")     \
    GAUGE(CPU_PERIOD_USEC, "spec_cpu_period", "Length of a CPU quota period in microseconds.")     \
    GAUGE(CPU_SHARES, "spec_cpu_shares",                                                           \
          "Share of the CPU under contention; from cpu.weight on cgroup v2.")                      \
    BYTES(MEMORY_MAX, "spec_memory_limit", "Memory limit; 0 if there is none.")                    \
    BYTES(MEMORY_SWAP_MAX, "spec_memory_swap_limit",                                               \
          "Limit of swap (v1: of memory and swap); 0 if there is none.")                           \
    BYTES(MEMORY_MIN, "spec_memory_reservation_limit",                                             \
          "Memory reserved for the container; 0 if none is.")

#define COUNTER(value, name, help) {"container_" name "_total", help, METRIC_COUNTER, NULL, OWN},
#define SECONDS(value, name, help)                                                                 \
    {"container_" name "_seconds_total", help, METRIC_COUNTER, "seconds", OWN},
#define GAUGE(value, name, help) {"container_" name, help, METRIC_GAUGE, NULL, OWN},
#define BYTES(value, name, help) {"container_" name "_bytes", help, METRIC_GAUGE, "bytes", OWN},

const struct metric_desc container_descs[] = {
    ROW(CPU_USAGE, "cpu_usage_seconds_total", "CPU time used.", COUNTER, "seconds", OWN ", cpu"),
    ROW(CPU_PEAK, "cpu_usage_peak_cores",
        "Highest CPU usage of any sample within sample.peak-window.", GAUGE, "cores", OWN),
    ROW(MEMORY_WORKING_SET, "memory_working_set_bytes", "Memory usage without inactive page cache.",
        GAUGE, "bytes", OWN),
    ROW(MEMORY_FAILURES, "memory_failures_total", "Page faults, by kind.", COUNTER, NULL,
        OWN ", failure_type, scope"),
    DISK(READS_BYTES, "reads_bytes", "bytes", "Bytes read from the disk."),
    DISK(WRITES_BYTES, "writes_bytes", "bytes", "Bytes written to the disk."),
    DISK(READS, "reads", NULL, "Read requests."),
    DISK(WRITES, "writes", NULL, "Write requests."),
    NETWORK(RECEIVE_BYTES, "receive_bytes", "bytes", "Bytes received."),
    NETWORK(RECEIVE_PACKETS, "receive_packets", NULL, "Packets received."),
    NETWORK(RECEIVE_ERRORS, "receive_errors", NULL, "Errors while receiving."),
    NETWORK(RECEIVE_DROPPED, "receive_packets_dropped", NULL, "Packets dropped while receiving."),
    NETWORK(TRANSMIT_BYTES, "transmit_bytes", "bytes", "Bytes sent."),
    NETWORK(TRANSMIT_PACKETS, "transmit_packets", NULL, "Packets sent."),
    NETWORK(TRANSMIT_ERRORS, "transmit_errors", NULL, "Errors while transmitting."),
    NETWORK(TRANSMIT_DROPPED, "transmit_packets_dropped", NULL,
            "Packets dropped while transmitting."),
    ROW(PROCESSES, "processes", "Processes.", GAUGE, NULL, OWN),
    ROW(START_TIME, "start_time_seconds", "Start time of the container, in seconds since 1970.",
        GAUGE, "seconds", OWN),
    ROW(LAST_SEEN, "last_seen", "Time at which the container was last seen, in seconds since 1970.",
        GAUGE, NULL, OWN),
    ROW(ENERGY, "energy_estimate_joules_total",
        "Estimated energy used by a container, or by none of them: idle and shared.", COUNTER,
        "joules", OWN ", source"),
    FINISHED(FINISHED, "", NULL, "Containers that have ended since the daemon started."),
    FINISHED(FINISHED_CPU, "_cpu_usage_seconds", "seconds",
             "CPU time used by containers that have ended."),
    FINISHED(FINISHED_ENERGY, "_energy_estimate_joules", "joules",
             "Estimated energy used by containers that have ended."),
    FINISHED(FINISHED_LIFETIME, "_lifetime_seconds", "seconds",
             "Lifetime of containers that have ended."),
    STATISTICS(COUNTER, SECONDS, GAUGE, BYTES){0},
};

#define VALUE(value, name, help) CGROUP_##value,

/* Of the descriptions from CONTAINER_FIRST_STATISTIC on. */
static const enum cgroup_value values[] = {STATISTICS(VALUE, VALUE, VALUE, VALUE)};

struct metric_desc *container_metrics_create(const char *prefix) {
    struct metric_desc *descs = mem_dup(container_descs, sizeof(container_descs));
    for (struct metric_desc *desc = descs; desc->name != NULL; desc++) {
        struct buf name = {0};
        buf_printf(&name, "%s%s", prefix, desc->name + strlen("container"));
        desc->name = buf_take(&name);
    }
    return descs;
}

void container_metrics_destroy(struct metric_desc *descs) {
    for (struct metric_desc *desc = descs; desc != NULL && desc->name != NULL; desc++) {
        free((char *)desc->name);
    }
    free(descs);
}

/* cAdvisor's formula, rounded down as there. */
static double shares_of_weight(double weight) {
    return weight > 0 ? floor(2 + (weight - 1) * 262142 / 9999) : NAN;
}

/* Expresses the statistics as cAdvisor does: some limits are 0 if they are not set, statistics of
 * the CPU quota exist only with a quota, and v1 and v2 use the same names. */
static void translate(double stats[static CGROUP_N_VALUES]) {
    static const enum cgroup_value zero_if_unset[] = {
        CGROUP_PIDS_MAX,         CGROUP_MEMORY_MAX, CGROUP_MEMORY_SWAP_MAX,
        CGROUP_MEMORY_MEMSW_MAX, CGROUP_MEMORY_MIN, CGROUP_MEMORY_SOFT_LIMIT,
    };
    static const enum cgroup_value of_quota[] = {
        CGROUP_CPU_PERIODS, CGROUP_CPU_THROTTLED_PERIODS, CGROUP_CPU_THROTTLED, CGROUP_CPU_BURSTS,
        CGROUP_CPU_BURST,
    };
    static const struct {
        enum cgroup_value value, otherwise;
    } alternatives[] = {
        {CGROUP_MEMORY_FAILCNT, CGROUP_MEMORY_EVENTS_MAX},
        {CGROUP_MEMORY_MIN, CGROUP_MEMORY_SOFT_LIMIT},
        {CGROUP_MEMORY_SWAP_MAX, CGROUP_MEMORY_MEMSW_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(zero_if_unset); i++) {
        double *limit = &stats[zero_if_unset[i]];
        *limit = isinf(*limit) ? 0 : *limit;
    }
    for (size_t i = 0; !isfinite(stats[CGROUP_CPU_QUOTA_USEC]) && i < ARRAY_LEN(of_quota); i++) {
        stats[of_quota[i]] = NAN;
    }
    for (size_t i = 0; i < ARRAY_LEN(alternatives); i++) {
        double *value = &stats[alternatives[i].value];
        *value = isnan(*value) ? stats[alternatives[i].otherwise] : *value;
    }
    if (isnan(stats[CGROUP_CPU_SHARES])) {
        stats[CGROUP_CPU_SHARES] = shares_of_weight(stats[CGROUP_CPU_WEIGHT]);
    }
}

void container_metrics_add(const struct metric_desc *descs, struct cgroup_stats *stats,
                           const struct labels *labels, struct snapshot *out) {
    double working_set = cgroup_stats_working_set(stats);
    if (isfinite(working_set)) {
        snapshot_add(out, &descs[CONTAINER_MEMORY_WORKING_SET], labels, working_set);
    }
    translate(stats->values);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        double value = stats->values[values[i]];
        if (isfinite(value)) {
            snapshot_add(out, &descs[CONTAINER_FIRST_STATISTIC + i], labels, value);
        }
    }
}
