#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/scan.h"

/* The columns of a "cpuN" line of /proc/stat, in their order. */
enum cpu_stat_mode {
    CPU_STAT_USER,
    CPU_STAT_NICE,
    CPU_STAT_SYSTEM,
    CPU_STAT_IDLE,
    CPU_STAT_IOWAIT,
    CPU_STAT_IRQ,
    CPU_STAT_SOFTIRQ,
    CPU_STAT_STEAL,
    CPU_STAT_GUEST,
    CPU_STAT_GUEST_NICE,
    CPU_STAT_N_MODES,
};

/* One CPU's line; old kernels give fewer modes. */
struct cpu_stat_line {
    uint64_t id;
    size_t n_modes;
    uint64_t ticks[CPU_STAT_N_MODES];
};

/* "cpu0 1266 0 1180 85363 39 0 6 115 0 0"; 0 or -EINVAL. */
int cpu_stat_parse(const char *line, struct cpu_stat_line *ret_line);

/* The ticks that all CPUs were busy, in user and kernel mode, from the first line of /proc/stat:
 * "cpu  1266 0 1180 85363 39 0 6 115 0 0"; 0 or -EINVAL. */
int cpu_stat_parse_busy(const char *text, uint64_t *ret_ticks);

enum { DISKSTATS_MIN_FIELDS = 11, DISKSTATS_MAX_FIELDS = 17 };

/* One line of /proc/diskstats. Kernels before 4.18 have 11 fields, before 5.5 they have 15. */
struct diskstats_line {
    struct scan_word device;
    size_t n_fields;
    uint64_t fields[DISKSTATS_MAX_FIELDS];
};

/* "254 0 vda 32454 8659 …"; 0 or -EINVAL. */
int diskstats_parse(const char *line, struct diskstats_line *ret_line);

/* One line of /proc/meminfo. */
struct meminfo_line {
    struct scan_word key; /* without the colon */
    uint64_t value;
    bool kilobytes; /* else a plain number, as for huge pages */
};

/* "Active(anon):  1164 kB"; 0 or -EINVAL. */
int meminfo_parse(const char *line, struct meminfo_line *ret_line);

enum { NET_DEV_FIELDS = 16 };

/* One device's line of /proc/net/dev. */
struct net_dev_line {
    struct scan_word device;
    uint64_t fields[NET_DEV_FIELDS];
};

/* "  eth0: 65431250 1543 …"; the number may follow the colon at once. 0 or -EINVAL. */
int net_dev_parse(const char *line, struct net_dev_line *ret_line);

/* One line of /proc/pressure/… or of a cgroup's *.pressure. */
struct pressure_line {
    bool full;           /* "full": all tasks waited; else "some": at least one did */
    uint64_t total_usec; /* since boot, or since the cgroup was created */
};

/* "some avg10=8.36 avg60=3.70 avg300=1.71 total=14293735"; 0 or -EINVAL. */
int pressure_parse(const char *line, struct pressure_line *ret_line);
