#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Statistics of a cgroup, the same for v1 and v2, in seconds and bytes unless the name has another
 * unit. Unknown values are NaN; a limit that is not set is infinite. */
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

/* Memory that cannot be reclaimed soon: usage without inactive page cache; NaN if either is
 * unknown. */
double cgroup_stats_working_set(const struct cgroup_stats *stats);

/* Bits. In v1 each controller may have its own hierarchy; in v2 one hierarchy has all. */
enum cgroup_controller {
    CGROUP_CPU = 1 << 0,
    CGROUP_CPUACCT = 1 << 1, /* in v2: the times in cpu.stat, which need no controller */
    CGROUP_MEMORY = 1 << 2,
    CGROUP_IO = 1 << 3, /* in v1: blkio */
    CGROUP_PIDS = 1 << 4,
    CGROUP_CORE = 1 << 5, /* v2 only: pressure and cgroup.stat, which need no controller */
};

/* The readers of a file. */
enum cgroup_reader {
    CGROUP_FOR_CGROUP = 1 << 0,
    CGROUP_FOR_CONTAINER = 1 << 1,
    CGROUP_FOR_RUN = 1 << 2, /* an application that is being profiled: often, so the fewest files */
    CGROUP_FOR_BOTH = CGROUP_FOR_CGROUP | CGROUP_FOR_CONTAINER,
    CGROUP_FOR_ALL = CGROUP_FOR_BOTH | CGROUP_FOR_RUN,
};

struct cgroup_key;

struct cgroup_file {
    const char *name;
    bool unified; /* of v2 */
    bool limit;   /* changes rarely */
    enum cgroup_controller controller;
    enum cgroup_reader readers;
    const char *unless; /* not read if this file, the row before, exists */

    /* Reads the file's text and touches nothing else. Values that the text lacks stay as they are;
     * unknown lines and keys are skipped. 0, or -EINVAL if a known one is malformed (the rest is
     * still taken), or -ENOSPC if there are too many devices. */
    int (*parse)(const struct cgroup_file *file, const char *text, struct cgroup_stats *out);

    /* For `parse`. */
    int (*parse_line)(const struct cgroup_file *file, const char *line, struct cgroup_stats *out);
    enum cgroup_value value;
    enum cgroup_io_value io_values[3]; /* of reads, writes, discards */
    const struct cgroup_key *keys;
    size_t n_keys;
};

enum { CGROUP_MAX_FILES = 64 }; /* bits of a mask */

extern const struct cgroup_file cgroup_files[];
extern const size_t cgroup_n_files;
