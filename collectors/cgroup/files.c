#include "collectors/cgroup/files.h"

#include <unistd.h>

#include "collectors/cgroup/parse.h"
#include "exporter/core/cleanup.h"

#define USEC 1e6
#define NSEC 1e9

/* One reader per file, so that the table of files needs no arguments. */
#define SCALAR(function, value, divisor)                                                           \
    static int function(const char *text, struct cgroup_stats *out) {                              \
        return cgroup_parse_scalar(text, value, divisor, out);                                     \
    }
#define KEYED(function, ...)                                                                       \
    static int function(const char *text, struct cgroup_stats *out) {                              \
        static const struct cgroup_key keys[] = {__VA_ARGS__};                                     \
        return cgroup_parse_keyed(text, keys, ARRAY_LEN(keys), out);                               \
    }
#define PRESSURE(function, waiting)                                                                \
    static int function(const char *text, struct cgroup_stats *out) {                              \
        return cgroup_parse_pressure(text, waiting, out);                                          \
    }
#define BLKIO(function, read, discard)                                                             \
    static int function(const char *text, struct cgroup_stats *out) {                              \
        return cgroup_parse_blkio(text, read, discard, out);                                       \
    }

/* Keys stand in the kernel's order, which the parser takes as a hint. */
KEYED(cpu_stat, CGROUP_KEY("usage_usec", CGROUP_CPU_USAGE, USEC),
      CGROUP_KEY("user_usec", CGROUP_CPU_USER, USEC),
      CGROUP_KEY("system_usec", CGROUP_CPU_SYSTEM, USEC),
      CGROUP_KEY("nr_periods", CGROUP_CPU_PERIODS, 1),
      CGROUP_KEY("nr_throttled", CGROUP_CPU_THROTTLED_PERIODS, 1),
      CGROUP_KEY("throttled_usec", CGROUP_CPU_THROTTLED, USEC),
      CGROUP_KEY("nr_bursts", CGROUP_CPU_BURSTS, 1),
      CGROUP_KEY("burst_usec", CGROUP_CPU_BURST, USEC))

KEYED(memory_events, CGROUP_KEY("low", CGROUP_MEMORY_EVENTS_LOW, 1),
      CGROUP_KEY("high", CGROUP_MEMORY_EVENTS_HIGH, 1),
      CGROUP_KEY("max", CGROUP_MEMORY_EVENTS_MAX, 1),
      CGROUP_KEY("oom", CGROUP_MEMORY_EVENTS_OOM, 1),
      CGROUP_KEY("oom_kill", CGROUP_MEMORY_EVENTS_OOM_KILL, 1),
      CGROUP_KEY("oom_group_kill", CGROUP_MEMORY_EVENTS_OOM_GROUP_KILL, 1))

KEYED(memory_stat, CGROUP_KEY("anon", CGROUP_MEMORY_ANON, 1),
      CGROUP_KEY("file", CGROUP_MEMORY_FILE, 1), CGROUP_KEY("kernel", CGROUP_MEMORY_KERNEL, 1),
      CGROUP_KEY("kernel_stack", CGROUP_MEMORY_KERNEL_STACK, 1),
      CGROUP_KEY("pagetables", CGROUP_MEMORY_PAGETABLES, 1),
      CGROUP_KEY("percpu", CGROUP_MEMORY_PERCPU, 1), CGROUP_KEY("sock", CGROUP_MEMORY_SOCK, 1),
      CGROUP_KEY("shmem", CGROUP_MEMORY_SHMEM, 1), CGROUP_KEY("zswap", CGROUP_MEMORY_ZSWAP, 1),
      CGROUP_KEY("zswapped", CGROUP_MEMORY_ZSWAPPED, 1),
      CGROUP_KEY("file_mapped", CGROUP_MEMORY_FILE_MAPPED, 1),
      CGROUP_KEY("file_dirty", CGROUP_MEMORY_FILE_DIRTY, 1),
      CGROUP_KEY("file_writeback", CGROUP_MEMORY_FILE_WRITEBACK, 1),
      CGROUP_KEY("swapcached", CGROUP_MEMORY_SWAPCACHED, 1),
      CGROUP_KEY("inactive_anon", CGROUP_MEMORY_INACTIVE_ANON, 1),
      CGROUP_KEY("active_anon", CGROUP_MEMORY_ACTIVE_ANON, 1),
      CGROUP_KEY("inactive_file", CGROUP_MEMORY_INACTIVE_FILE, 1),
      CGROUP_KEY("active_file", CGROUP_MEMORY_ACTIVE_FILE, 1),
      CGROUP_KEY("unevictable", CGROUP_MEMORY_UNEVICTABLE, 1),
      CGROUP_KEY("slab_reclaimable", CGROUP_MEMORY_SLAB_RECLAIMABLE, 1),
      CGROUP_KEY("slab_unreclaimable", CGROUP_MEMORY_SLAB_UNRECLAIMABLE, 1),
      CGROUP_KEY("workingset_refault_anon", CGROUP_MEMORY_REFAULT_ANON, 1),
      CGROUP_KEY("workingset_refault_file", CGROUP_MEMORY_REFAULT_FILE, 1),
      CGROUP_KEY("pgscan", CGROUP_MEMORY_PGSCAN, 1),
      CGROUP_KEY("pgsteal", CGROUP_MEMORY_PGSTEAL, 1),
      CGROUP_KEY("pgfault", CGROUP_MEMORY_PGFAULT, 1),
      CGROUP_KEY("pgmajfault", CGROUP_MEMORY_PGMAJFAULT, 1))

KEYED(cgroup_stat, CGROUP_KEY("nr_descendants", CGROUP_DESCENDANTS, 1),
      CGROUP_KEY("nr_dying_descendants", CGROUP_DYING_DESCENDANTS, 1))

KEYED(v1_cpu_stat, CGROUP_KEY("nr_periods", CGROUP_CPU_PERIODS, 1),
      CGROUP_KEY("nr_throttled", CGROUP_CPU_THROTTLED_PERIODS, 1),
      CGROUP_KEY("throttled_time", CGROUP_CPU_THROTTLED, NSEC),
      CGROUP_KEY("nr_bursts", CGROUP_CPU_BURSTS, 1),
      CGROUP_KEY("burst_time", CGROUP_CPU_BURST, NSEC))

/* Only total_* counts the children, as all of v2 does. */
KEYED(v1_memory_stat, CGROUP_KEY("total_cache", CGROUP_MEMORY_FILE, 1),
      CGROUP_KEY("total_rss", CGROUP_MEMORY_ANON, 1),
      CGROUP_KEY("total_shmem", CGROUP_MEMORY_SHMEM, 1),
      CGROUP_KEY("total_mapped_file", CGROUP_MEMORY_FILE_MAPPED, 1),
      CGROUP_KEY("total_dirty", CGROUP_MEMORY_FILE_DIRTY, 1),
      CGROUP_KEY("total_writeback", CGROUP_MEMORY_FILE_WRITEBACK, 1),
      CGROUP_KEY("total_workingset_refault_anon", CGROUP_MEMORY_REFAULT_ANON, 1),
      CGROUP_KEY("total_workingset_refault_file", CGROUP_MEMORY_REFAULT_FILE, 1),
      CGROUP_KEY("total_swap", CGROUP_MEMORY_SWAP_CURRENT, 1),
      CGROUP_KEY("total_swapcached", CGROUP_MEMORY_SWAPCACHED, 1),
      CGROUP_KEY("total_pgfault", CGROUP_MEMORY_PGFAULT, 1),
      CGROUP_KEY("total_pgmajfault", CGROUP_MEMORY_PGMAJFAULT, 1),
      CGROUP_KEY("total_inactive_anon", CGROUP_MEMORY_INACTIVE_ANON, 1),
      CGROUP_KEY("total_active_anon", CGROUP_MEMORY_ACTIVE_ANON, 1),
      CGROUP_KEY("total_inactive_file", CGROUP_MEMORY_INACTIVE_FILE, 1),
      CGROUP_KEY("total_active_file", CGROUP_MEMORY_ACTIVE_FILE, 1),
      CGROUP_KEY("total_unevictable", CGROUP_MEMORY_UNEVICTABLE, 1))

KEYED(v1_oom_control, CGROUP_KEY("oom_kill", CGROUP_MEMORY_EVENTS_OOM_KILL, 1))

/* In clock ticks, of which there are 100 a second on every machine of today. */
static int v1_cpuacct_stat(const char *text, struct cgroup_stats *out) {
    static const struct cgroup_key keys[] = {
        CGROUP_KEY("user", CGROUP_CPU_USER, 1),
        CGROUP_KEY("system", CGROUP_CPU_SYSTEM, 1),
    };
    int r = cgroup_parse_keyed(text, keys, ARRAY_LEN(keys), out);
    double ticks = (double)sysconf(_SC_CLK_TCK);
    out->values[CGROUP_CPU_USER] /= ticks;
    out->values[CGROUP_CPU_SYSTEM] /= ticks;
    return r;
}

SCALAR(cpu_weight, CGROUP_CPU_WEIGHT, 1)
SCALAR(memory_current, CGROUP_MEMORY_CURRENT, 1)
SCALAR(memory_high, CGROUP_MEMORY_HIGH, 1)
SCALAR(memory_low, CGROUP_MEMORY_LOW, 1)
SCALAR(memory_max, CGROUP_MEMORY_MAX, 1)
SCALAR(memory_min, CGROUP_MEMORY_MIN, 1)
SCALAR(memory_peak, CGROUP_MEMORY_PEAK, 1)
SCALAR(memory_swap_current, CGROUP_MEMORY_SWAP_CURRENT, 1)
SCALAR(memory_swap_max, CGROUP_MEMORY_SWAP_MAX, 1)
SCALAR(pids_current, CGROUP_PIDS_CURRENT, 1)
SCALAR(pids_max, CGROUP_PIDS_MAX, 1)
SCALAR(pids_peak, CGROUP_PIDS_PEAK, 1)
PRESSURE(cpu_pressure, CGROUP_PRESSURE_CPU_WAITING)
PRESSURE(io_pressure, CGROUP_PRESSURE_IO_WAITING)
PRESSURE(memory_pressure, CGROUP_PRESSURE_MEMORY_WAITING)

SCALAR(v1_cpu_period, CGROUP_CPU_PERIOD_USEC, 1)
SCALAR(v1_cpu_quota, CGROUP_CPU_QUOTA_USEC, 1)
SCALAR(v1_cpu_shares, CGROUP_CPU_SHARES, 1)
SCALAR(v1_cpuacct_usage, CGROUP_CPU_USAGE, NSEC)
SCALAR(v1_memory_failcnt, CGROUP_MEMORY_FAILCNT, 1)
SCALAR(v1_memory_kernel, CGROUP_MEMORY_KERNEL, 1)
SCALAR(v1_memory_memsw_max, CGROUP_MEMORY_MEMSW_MAX, 1)
SCALAR(v1_memory_soft_limit, CGROUP_MEMORY_SOFT_LIMIT, 1)
BLKIO(v1_blkio_bytes, CGROUP_IO_READ_BYTES, CGROUP_IO_DISCARDED_BYTES)
BLKIO(v1_blkio_requests, CGROUP_IO_READS, CGROUP_IO_DISCARDS)

#define V2(name, controller, readers, parse)                                                       \
    { name, true, false, controller, readers, NULL, parse }
#define V2_LIMIT(name, controller, readers, parse)                                                 \
    { name, true, true, controller, readers, NULL, parse }
#define V1(name, controller, readers, parse)                                                       \
    { name, false, false, controller, readers, NULL, parse }
#define V1_LIMIT(name, controller, readers, parse)                                                 \
    { name, false, true, controller, readers, NULL, parse }
#define V1_UNLESS(other, name, controller, readers, parse)                                         \
    { name, false, false, controller, readers, other, parse }

const struct cgroup_file cgroup_files[] = {
    V2("cgroup.stat", CGROUP_CORE, CGROUP_FOR_CGROUP, cgroup_stat),
    V2_LIMIT("cpu.max", CGROUP_CPU, CGROUP_FOR_BOTH, cgroup_parse_cpu_max),
    V2("cpu.pressure", CGROUP_CORE, CGROUP_FOR_BOTH, cpu_pressure),
    V2("cpu.stat", CGROUP_CPUACCT, CGROUP_FOR_ALL, cpu_stat),
    V2_LIMIT("cpu.weight", CGROUP_CPU, CGROUP_FOR_BOTH, cpu_weight),
    V2("io.pressure", CGROUP_CORE, CGROUP_FOR_BOTH, io_pressure),
    V2("io.stat", CGROUP_IO, CGROUP_FOR_ALL, cgroup_parse_io_stat),
    V2("memory.current", CGROUP_MEMORY, CGROUP_FOR_ALL, memory_current),
    V2("memory.events", CGROUP_MEMORY, CGROUP_FOR_BOTH, memory_events),
    V2_LIMIT("memory.high", CGROUP_MEMORY, CGROUP_FOR_CGROUP, memory_high),
    V2_LIMIT("memory.low", CGROUP_MEMORY, CGROUP_FOR_CGROUP, memory_low),
    V2_LIMIT("memory.max", CGROUP_MEMORY, CGROUP_FOR_BOTH, memory_max),
    V2_LIMIT("memory.min", CGROUP_MEMORY, CGROUP_FOR_BOTH, memory_min),
    V2("memory.peak", CGROUP_MEMORY, CGROUP_FOR_ALL, memory_peak),
    V2("memory.pressure", CGROUP_CORE, CGROUP_FOR_BOTH, memory_pressure),
    V2("memory.stat", CGROUP_MEMORY, CGROUP_FOR_ALL, memory_stat),
    V2("memory.swap.current", CGROUP_MEMORY, CGROUP_FOR_BOTH, memory_swap_current),
    V2_LIMIT("memory.swap.max", CGROUP_MEMORY, CGROUP_FOR_BOTH, memory_swap_max),
    V2("pids.current", CGROUP_PIDS, CGROUP_FOR_ALL, pids_current),
    V2_LIMIT("pids.max", CGROUP_PIDS, CGROUP_FOR_BOTH, pids_max),
    V2("pids.peak", CGROUP_PIDS, CGROUP_FOR_CGROUP, pids_peak),

    V1("blkio.throttle.io_service_bytes_recursive", CGROUP_IO, CGROUP_FOR_ALL, v1_blkio_bytes),
    V1_UNLESS("blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes",
              CGROUP_IO, CGROUP_FOR_ALL, v1_blkio_bytes),
    V1("blkio.throttle.io_serviced_recursive", CGROUP_IO, CGROUP_FOR_BOTH, v1_blkio_requests),
    V1_UNLESS("blkio.throttle.io_serviced_recursive", "blkio.throttle.io_serviced", CGROUP_IO,
              CGROUP_FOR_BOTH, v1_blkio_requests),
    V1_LIMIT("cpu.cfs_period_us", CGROUP_CPU, CGROUP_FOR_BOTH, v1_cpu_period),
    V1_LIMIT("cpu.cfs_quota_us", CGROUP_CPU, CGROUP_FOR_BOTH, v1_cpu_quota),
    V1_LIMIT("cpu.shares", CGROUP_CPU, CGROUP_FOR_BOTH, v1_cpu_shares),
    V1("cpu.stat", CGROUP_CPU, CGROUP_FOR_ALL, v1_cpu_stat),
    V1("cpuacct.stat", CGROUP_CPUACCT, CGROUP_FOR_ALL, v1_cpuacct_stat),
    V1("cpuacct.usage", CGROUP_CPUACCT, CGROUP_FOR_ALL, v1_cpuacct_usage),
    V1("memory.failcnt", CGROUP_MEMORY, CGROUP_FOR_BOTH, v1_memory_failcnt),
    V1("memory.kmem.usage_in_bytes", CGROUP_MEMORY, CGROUP_FOR_BOTH, v1_memory_kernel),
    V1_LIMIT("memory.limit_in_bytes", CGROUP_MEMORY, CGROUP_FOR_BOTH, memory_max),
    V1("memory.max_usage_in_bytes", CGROUP_MEMORY, CGROUP_FOR_ALL, memory_peak),
    V1_LIMIT("memory.memsw.limit_in_bytes", CGROUP_MEMORY, CGROUP_FOR_BOTH, v1_memory_memsw_max),
    V1("memory.oom_control", CGROUP_MEMORY, CGROUP_FOR_BOTH, v1_oom_control),
    V1_LIMIT("memory.soft_limit_in_bytes", CGROUP_MEMORY, CGROUP_FOR_BOTH, v1_memory_soft_limit),
    V1("memory.stat", CGROUP_MEMORY, CGROUP_FOR_ALL, v1_memory_stat),
    V1("memory.usage_in_bytes", CGROUP_MEMORY, CGROUP_FOR_ALL, memory_current),
    V1("pids.current", CGROUP_PIDS, CGROUP_FOR_ALL, pids_current),
    V1_LIMIT("pids.max", CGROUP_PIDS, CGROUP_FOR_BOTH, pids_max),
};

const size_t cgroup_n_files = ARRAY_LEN(cgroup_files);
_Static_assert(ARRAY_LEN(cgroup_files) <= CGROUP_MAX_FILES, "a mask has a bit per file");
