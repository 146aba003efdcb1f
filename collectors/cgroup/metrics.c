#include "collectors/cgroup/metrics.h"

#include <math.h>

#include "exporter/core/cleanup.h"

#define COUNTER(id, name, help)                                                                    \
    [id] = {"cgroup_" name "_total", help, METRIC_COUNTER, NULL, "cgroup"}
#define SECONDS(id, name, help)                                                                    \
    [id] = {"cgroup_" name "_seconds_total", help, METRIC_COUNTER, "seconds", "cgroup"}
#define GAUGE(id, name, help) [id] = {"cgroup_" name, help, METRIC_GAUGE, NULL, "cgroup"}
#define BYTES(id, name, help)                                                                      \
    [id] = {"cgroup_" name "_bytes", help, METRIC_GAUGE, "bytes", "cgroup"}
#define IO(id, name, help)                                                                         \
    [id] = {"cgroup_io_" name "_total", help, METRIC_COUNTER, NULL, "cgroup, device"}
#define IO_BYTES(id, name, help)                                                                   \
    [id] = {"cgroup_io_" name "_bytes_total", help, METRIC_COUNTER, "bytes", "cgroup, device"}

/* The quota in µs and its period are told together, as cgroup_cpu_quota_cores. */
static const struct metric_desc descs[CGROUP_N_VALUES] = {
    SECONDS(CGROUP_CPU_USAGE, "cpu_usage", "CPU time used."),
    SECONDS(CGROUP_CPU_USER, "cpu_user", "CPU time used by the programs themselves."),
    SECONDS(CGROUP_CPU_SYSTEM, "cpu_system", "CPU time used by the kernel for the programs."),
    COUNTER(CGROUP_CPU_PERIODS, "cpu_periods", "Periods of the CPU quota in which something ran."),
    COUNTER(CGROUP_CPU_THROTTLED_PERIODS, "cpu_throttled_periods",
            "Periods in which the CPU quota was used up."),
    SECONDS(CGROUP_CPU_THROTTLED, "cpu_throttled",
            "Time that all CPUs together were held back by the quota."),
    COUNTER(CGROUP_CPU_BURSTS, "cpu_bursts", "Periods in which saved-up quota was used."),
    SECONDS(CGROUP_CPU_BURST, "cpu_burst",
            "CPU time used beyond the quota from what was saved up."),
    GAUGE(CGROUP_CPU_WEIGHT, "cpu_weight",
          "Share of the CPU under contention, 1 to 10000 (cgroup v2)."),
    GAUGE(CGROUP_CPU_SHARES, "cpu_shares",
          "Share of the CPU under contention, 2 to 262144 (cgroup v1)."),
    BYTES(CGROUP_MEMORY_CURRENT, "memory_usage",
          "Memory in use, with page cache and kernel memory."),
    BYTES(CGROUP_MEMORY_PEAK, "memory_peak", "Most memory that was ever in use."),
    BYTES(CGROUP_MEMORY_MIN, "memory_min", "Memory that is never reclaimed."),
    BYTES(CGROUP_MEMORY_LOW, "memory_low",
          "Memory that is reclaimed only if nothing else is left."),
    BYTES(CGROUP_MEMORY_HIGH, "memory_high",
          "Memory beyond which the cgroup is slowed down; absent without limit."),
    BYTES(CGROUP_MEMORY_MAX, "memory_max", "Most memory that may be in use; absent without limit."),
    BYTES(CGROUP_MEMORY_SOFT_LIMIT, "memory_soft_limit",
          "Memory beyond which reclaim prefers this cgroup (cgroup v1); absent without limit."),
    BYTES(CGROUP_MEMORY_SWAP_CURRENT, "memory_swap_usage", "Swap in use."),
    BYTES(CGROUP_MEMORY_SWAP_MAX, "memory_swap_max",
          "Most swap that may be in use; absent without limit."),
    BYTES(CGROUP_MEMORY_MEMSW_MAX, "memory_and_swap_max",
          "Most memory and swap together (cgroup v1); absent without limit."),
    COUNTER(CGROUP_MEMORY_FAILCNT, "memory_failures", "Times that the limit was hit (cgroup v1)."),
    COUNTER(CGROUP_MEMORY_EVENTS_LOW, "memory_events_low",
            "Times that memory below the low mark was reclaimed."),
    COUNTER(CGROUP_MEMORY_EVENTS_HIGH, "memory_events_high",
            "Times that the high mark slowed the cgroup down."),
    COUNTER(CGROUP_MEMORY_EVENTS_MAX, "memory_events_max",
            "Times that the limit was about to be exceeded."),
    COUNTER(CGROUP_MEMORY_EVENTS_OOM, "memory_events_oom",
            "Times that an allocation was about to fail for the limit."),
    COUNTER(CGROUP_MEMORY_EVENTS_OOM_KILL, "memory_events_oom_kill",
            "Processes killed for want of memory."),
    COUNTER(CGROUP_MEMORY_EVENTS_OOM_GROUP_KILL, "memory_events_oom_group_kill",
            "Times that the whole cgroup was killed for want of memory."),
    BYTES(CGROUP_MEMORY_ANON, "memory_anon",
          "Memory of the programs themselves: heap, stacks, private mappings."),
    BYTES(CGROUP_MEMORY_FILE, "memory_file", "Page cache, with tmpfs and shared memory."),
    BYTES(CGROUP_MEMORY_KERNEL, "memory_kernel", "Memory of the kernel for this cgroup."),
    BYTES(CGROUP_MEMORY_KERNEL_STACK, "memory_kernel_stack", "Kernel stacks."),
    BYTES(CGROUP_MEMORY_PAGETABLES, "memory_pagetables", "Page tables."),
    BYTES(CGROUP_MEMORY_PERCPU, "memory_percpu", "The kernel's per-CPU data."),
    BYTES(CGROUP_MEMORY_SOCK, "memory_sock", "Network buffers."),
    BYTES(CGROUP_MEMORY_SHMEM, "memory_shmem", "tmpfs and shared memory."),
    BYTES(CGROUP_MEMORY_ZSWAP, "memory_zswap", "Memory taken by compressed swap."),
    BYTES(CGROUP_MEMORY_ZSWAPPED, "memory_zswapped", "Memory swapped out into compressed swap."),
    BYTES(CGROUP_MEMORY_FILE_MAPPED, "memory_file_mapped", "Page cache that is mapped."),
    BYTES(CGROUP_MEMORY_FILE_DIRTY, "memory_file_dirty", "Page cache that is to be written."),
    BYTES(CGROUP_MEMORY_FILE_WRITEBACK, "memory_file_writeback",
          "Page cache that is being written."),
    BYTES(CGROUP_MEMORY_SWAPCACHED, "memory_swapcached", "Swap that is in memory too."),
    BYTES(CGROUP_MEMORY_INACTIVE_ANON, "memory_inactive_anon",
          "Program memory that was not used lately."),
    BYTES(CGROUP_MEMORY_ACTIVE_ANON, "memory_active_anon", "Program memory that was used lately."),
    BYTES(CGROUP_MEMORY_INACTIVE_FILE, "memory_inactive_file",
          "Page cache that was not used lately."),
    BYTES(CGROUP_MEMORY_ACTIVE_FILE, "memory_active_file", "Page cache that was used lately."),
    BYTES(CGROUP_MEMORY_UNEVICTABLE, "memory_unevictable", "Memory that cannot be reclaimed."),
    BYTES(CGROUP_MEMORY_SLAB_RECLAIMABLE, "memory_slab_reclaimable",
          "Kernel caches that can be reclaimed."),
    BYTES(CGROUP_MEMORY_SLAB_UNRECLAIMABLE, "memory_slab_unreclaimable",
          "Kernel caches that cannot be reclaimed."),
    COUNTER(CGROUP_MEMORY_REFAULT_ANON, "memory_refault_anon",
            "Pages of programs that came back soon after being reclaimed."),
    COUNTER(CGROUP_MEMORY_REFAULT_FILE, "memory_refault_file",
            "Pages of files that came back soon after being reclaimed."),
    COUNTER(CGROUP_MEMORY_PGSCAN, "memory_scanned_pages", "Pages looked at for reclaim."),
    COUNTER(CGROUP_MEMORY_PGSTEAL, "memory_reclaimed_pages", "Pages reclaimed."),
    COUNTER(CGROUP_MEMORY_PGFAULT, "memory_page_faults", "Page faults."),
    COUNTER(CGROUP_MEMORY_PGMAJFAULT, "memory_major_page_faults",
            "Page faults that had to read from a disk."),
    GAUGE(CGROUP_PIDS_CURRENT, "pids", "Tasks: threads of all processes."),
    GAUGE(CGROUP_PIDS_PEAK, "pids_peak", "Most tasks there ever were."),
    GAUGE(CGROUP_PIDS_MAX, "pids_max", "Most tasks there may be; absent without limit."),
    SECONDS(CGROUP_PRESSURE_CPU_WAITING, "pressure_cpu_waiting",
            "Time during which some task waited for a CPU."),
    SECONDS(CGROUP_PRESSURE_CPU_STALLED, "pressure_cpu_stalled",
            "Time during which every task waited for a CPU."),
    SECONDS(CGROUP_PRESSURE_IO_WAITING, "pressure_io_waiting",
            "Time during which some task waited for input or output."),
    SECONDS(CGROUP_PRESSURE_IO_STALLED, "pressure_io_stalled",
            "Time during which every task waited for input or output."),
    SECONDS(CGROUP_PRESSURE_MEMORY_WAITING, "pressure_memory_waiting",
            "Time during which some task waited for memory."),
    SECONDS(CGROUP_PRESSURE_MEMORY_STALLED, "pressure_memory_stalled",
            "Time during which every task waited for memory."),
    GAUGE(CGROUP_DESCENDANTS, "descendants", "Cgroups below this one."),
    GAUGE(CGROUP_DYING_DESCENDANTS, "dying_descendants",
          "Removed cgroups below this one that still hold memory."),
};

const struct metric_desc cgroup_io_metrics[CGROUP_IO_N_VALUES] = {
    IO_BYTES(CGROUP_IO_READ_BYTES, "read", "Bytes read from the disk."),
    IO_BYTES(CGROUP_IO_WRITTEN_BYTES, "written", "Bytes written to the disk."),
    IO(CGROUP_IO_READS, "reads", "Read requests."),
    IO(CGROUP_IO_WRITES, "writes", "Write requests."),
    IO_BYTES(CGROUP_IO_DISCARDED_BYTES, "discarded", "Bytes discarded."),
    IO(CGROUP_IO_DISCARDS, "discards", "Discard requests."),
};

static const struct metric_desc quota = {"cgroup_cpu_quota_cores",
                                         "CPUs that may be used on average; absent without limit.",
                                         METRIC_GAUGE, "cores", "cgroup"};
static const struct metric_desc working_set = {
    "cgroup_memory_working_set_bytes",
    "Memory in use less page cache that was not used lately: what cannot be reclaimed soon.",
    METRIC_GAUGE, "bytes", "cgroup"};
const struct metric_desc cgroup_mode_metric = {"waap_cgroup_mode",
                                               "How control groups are mounted: v1, v2 or hybrid.",
                                               METRIC_GAUGE, NULL, "mode"};

const struct metric_desc *const cgroup_metrics[] = {
    &cgroup_mode_metric,
    &quota,
    &working_set,
    &descs[CGROUP_CPU_USAGE],
    &descs[CGROUP_CPU_USER],
    &descs[CGROUP_CPU_SYSTEM],
    &descs[CGROUP_CPU_PERIODS],
    &descs[CGROUP_CPU_THROTTLED_PERIODS],
    &descs[CGROUP_CPU_THROTTLED],
    &descs[CGROUP_CPU_BURSTS],
    &descs[CGROUP_CPU_BURST],
    &descs[CGROUP_CPU_WEIGHT],
    &descs[CGROUP_CPU_SHARES],
    &descs[CGROUP_MEMORY_CURRENT],
    &descs[CGROUP_MEMORY_PEAK],
    &descs[CGROUP_MEMORY_MIN],
    &descs[CGROUP_MEMORY_LOW],
    &descs[CGROUP_MEMORY_HIGH],
    &descs[CGROUP_MEMORY_MAX],
    &descs[CGROUP_MEMORY_SOFT_LIMIT],
    &descs[CGROUP_MEMORY_SWAP_CURRENT],
    &descs[CGROUP_MEMORY_SWAP_MAX],
    &descs[CGROUP_MEMORY_MEMSW_MAX],
    &descs[CGROUP_MEMORY_FAILCNT],
    &descs[CGROUP_MEMORY_EVENTS_LOW],
    &descs[CGROUP_MEMORY_EVENTS_HIGH],
    &descs[CGROUP_MEMORY_EVENTS_MAX],
    &descs[CGROUP_MEMORY_EVENTS_OOM],
    &descs[CGROUP_MEMORY_EVENTS_OOM_KILL],
    &descs[CGROUP_MEMORY_EVENTS_OOM_GROUP_KILL],
    &descs[CGROUP_MEMORY_ANON],
    &descs[CGROUP_MEMORY_FILE],
    &descs[CGROUP_MEMORY_KERNEL],
    &descs[CGROUP_MEMORY_KERNEL_STACK],
    &descs[CGROUP_MEMORY_PAGETABLES],
    &descs[CGROUP_MEMORY_PERCPU],
    &descs[CGROUP_MEMORY_SOCK],
    &descs[CGROUP_MEMORY_SHMEM],
    &descs[CGROUP_MEMORY_ZSWAP],
    &descs[CGROUP_MEMORY_ZSWAPPED],
    &descs[CGROUP_MEMORY_FILE_MAPPED],
    &descs[CGROUP_MEMORY_FILE_DIRTY],
    &descs[CGROUP_MEMORY_FILE_WRITEBACK],
    &descs[CGROUP_MEMORY_SWAPCACHED],
    &descs[CGROUP_MEMORY_INACTIVE_ANON],
    &descs[CGROUP_MEMORY_ACTIVE_ANON],
    &descs[CGROUP_MEMORY_INACTIVE_FILE],
    &descs[CGROUP_MEMORY_ACTIVE_FILE],
    &descs[CGROUP_MEMORY_UNEVICTABLE],
    &descs[CGROUP_MEMORY_SLAB_RECLAIMABLE],
    &descs[CGROUP_MEMORY_SLAB_UNRECLAIMABLE],
    &descs[CGROUP_MEMORY_REFAULT_ANON],
    &descs[CGROUP_MEMORY_REFAULT_FILE],
    &descs[CGROUP_MEMORY_PGSCAN],
    &descs[CGROUP_MEMORY_PGSTEAL],
    &descs[CGROUP_MEMORY_PGFAULT],
    &descs[CGROUP_MEMORY_PGMAJFAULT],
    &descs[CGROUP_PIDS_CURRENT],
    &descs[CGROUP_PIDS_PEAK],
    &descs[CGROUP_PIDS_MAX],
    &descs[CGROUP_PRESSURE_CPU_WAITING],
    &descs[CGROUP_PRESSURE_CPU_STALLED],
    &descs[CGROUP_PRESSURE_IO_WAITING],
    &descs[CGROUP_PRESSURE_IO_STALLED],
    &descs[CGROUP_PRESSURE_MEMORY_WAITING],
    &descs[CGROUP_PRESSURE_MEMORY_STALLED],
    &descs[CGROUP_DESCENDANTS],
    &descs[CGROUP_DYING_DESCENDANTS],
    &cgroup_io_metrics[CGROUP_IO_READ_BYTES],
    &cgroup_io_metrics[CGROUP_IO_WRITTEN_BYTES],
    &cgroup_io_metrics[CGROUP_IO_READS],
    &cgroup_io_metrics[CGROUP_IO_WRITES],
    &cgroup_io_metrics[CGROUP_IO_DISCARDED_BYTES],
    &cgroup_io_metrics[CGROUP_IO_DISCARDS],
    NULL,
};

static void add(struct snapshot *out, const struct metric_desc *desc, const struct labels *labels,
                double value) {
    if (isfinite(value)) {
        snapshot_add(out, desc, labels, value);
    }
}

void cgroup_metrics_add(const struct cgroup_stats *stats, const struct labels *labels,
                        struct snapshot *out) {
    for (size_t i = 0; i < ARRAY_LEN(descs); i++) {
        if (descs[i].name != NULL) {
            add(out, &descs[i], labels, stats->values[i]);
        }
    }
    add(out, &quota, labels,
        stats->values[CGROUP_CPU_QUOTA_USEC] / stats->values[CGROUP_CPU_PERIOD_USEC]);
    add(out, &working_set, labels, cgroup_stats_working_set(stats));
}
