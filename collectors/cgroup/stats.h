#pragma once

#include <stddef.h>
#include <stdint.h>

/* What the kernel tells about one cgroup, the same for cgroup v1 and v2, in seconds and bytes where
 * the name says nothing else. What it does not tell is NaN; a limit that is not set is infinite. */
enum cgroup_value {
    /* Limits, which change rarely. */
    CGROUP_CPU_QUOTA_USEC,
    CGROUP_CPU_PERIOD_USEC,
    CGROUP_CPU_WEIGHT, /* v2: 1 to 10000 */
    CGROUP_CPU_SHARES, /* v1: 2 to 262144 */
    CGROUP_MEMORY_MIN,
    CGROUP_MEMORY_LOW,
    CGROUP_MEMORY_HIGH,
    CGROUP_MEMORY_MAX,
    CGROUP_MEMORY_SOFT_LIMIT, /* v1 only */
    CGROUP_MEMORY_SWAP_MAX,
    CGROUP_MEMORY_MEMSW_MAX, /* v1 only: memory and swap together */
    CGROUP_PIDS_MAX,
    CGROUP_N_LIMITS,

    CGROUP_CPU_USAGE = CGROUP_N_LIMITS,
    CGROUP_CPU_USER,
    CGROUP_CPU_SYSTEM,
    CGROUP_CPU_PERIODS,
    CGROUP_CPU_THROTTLED_PERIODS,
    CGROUP_CPU_THROTTLED,
    CGROUP_CPU_BURSTS,
    CGROUP_CPU_BURST,

    CGROUP_MEMORY_CURRENT,
    CGROUP_MEMORY_PEAK,
    CGROUP_MEMORY_SWAP_CURRENT,
    CGROUP_MEMORY_FAILCNT, /* v1 only */
    CGROUP_MEMORY_EVENTS_LOW,
    CGROUP_MEMORY_EVENTS_HIGH,
    CGROUP_MEMORY_EVENTS_MAX,
    CGROUP_MEMORY_EVENTS_OOM,
    CGROUP_MEMORY_EVENTS_OOM_KILL,
    CGROUP_MEMORY_EVENTS_OOM_GROUP_KILL,

    /* Of memory.stat. */
    CGROUP_MEMORY_ANON,
    CGROUP_MEMORY_FILE,
    CGROUP_MEMORY_KERNEL,
    CGROUP_MEMORY_KERNEL_STACK,
    CGROUP_MEMORY_PAGETABLES,
    CGROUP_MEMORY_PERCPU,
    CGROUP_MEMORY_SOCK,
    CGROUP_MEMORY_SHMEM,
    CGROUP_MEMORY_ZSWAP,
    CGROUP_MEMORY_ZSWAPPED,
    CGROUP_MEMORY_FILE_MAPPED,
    CGROUP_MEMORY_FILE_DIRTY,
    CGROUP_MEMORY_FILE_WRITEBACK,
    CGROUP_MEMORY_SWAPCACHED,
    CGROUP_MEMORY_INACTIVE_ANON,
    CGROUP_MEMORY_ACTIVE_ANON,
    CGROUP_MEMORY_INACTIVE_FILE,
    CGROUP_MEMORY_ACTIVE_FILE,
    CGROUP_MEMORY_UNEVICTABLE,
    CGROUP_MEMORY_SLAB_RECLAIMABLE,
    CGROUP_MEMORY_SLAB_UNRECLAIMABLE,
    CGROUP_MEMORY_REFAULT_ANON,
    CGROUP_MEMORY_REFAULT_FILE,
    CGROUP_MEMORY_PGSCAN,
    CGROUP_MEMORY_PGSTEAL,
    CGROUP_MEMORY_PGFAULT,
    CGROUP_MEMORY_PGMAJFAULT,

    CGROUP_PIDS_CURRENT,
    CGROUP_PIDS_PEAK,

    /* "some" and "full" of each, in this order. */
    CGROUP_PRESSURE_CPU_WAITING,
    CGROUP_PRESSURE_CPU_STALLED,
    CGROUP_PRESSURE_IO_WAITING,
    CGROUP_PRESSURE_IO_STALLED,
    CGROUP_PRESSURE_MEMORY_WAITING,
    CGROUP_PRESSURE_MEMORY_STALLED,

    CGROUP_DESCENDANTS,
    CGROUP_DYING_DESCENDANTS,

    CGROUP_N_VALUES,
};

enum cgroup_io_value {
    CGROUP_IO_READ_BYTES,
    CGROUP_IO_WRITTEN_BYTES,
    CGROUP_IO_READS,
    CGROUP_IO_WRITES,
    CGROUP_IO_DISCARDED_BYTES,
    CGROUP_IO_DISCARDS,
    CGROUP_IO_N_VALUES,
};

struct cgroup_io {
    uint32_t major, minor;
    double values[CGROUP_IO_N_VALUES];
};

struct cgroup_stats {
    double values[CGROUP_N_VALUES];
    struct cgroup_io *devices;
    size_t n_devices;
    size_t cap_devices;
};

/* Forgets all values but keeps the memory. A zeroed struct must be reset before its first use. */
void cgroup_stats_reset(struct cgroup_stats *stats);
void cgroup_stats_finish(struct cgroup_stats *stats);

/* The row of that device, added with no values if there is none; NULL when memory is out or there
 * are too many. */
struct cgroup_io *cgroup_stats_device(struct cgroup_stats *stats, uint32_t major, uint32_t minor);

/* What cannot be reclaimed soon: usage less inactive page cache; NaN where either is unknown. */
double cgroup_stats_working_set(const struct cgroup_stats *stats);
