#pragma once

#include <stddef.h>
#include <stdint.h>

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

/* The ticks that all CPUs together have worked, for programs and for the kernel, from the first
 * line of /proc/stat: "cpu  1266 0 1180 85363 39 0 6 115 0 0"; 0 or -EINVAL. */
int cpu_stat_parse_busy(const char *text, uint64_t *ret_ticks);
