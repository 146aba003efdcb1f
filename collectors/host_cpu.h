#pragma once

#include <stddef.h>
#include <stdint.h>

/* The columns of a "cpuN" line of /proc/stat, in their order. */
enum host_cpu_mode {
    HOST_CPU_USER,
    HOST_CPU_NICE,
    HOST_CPU_SYSTEM,
    HOST_CPU_IDLE,
    HOST_CPU_IOWAIT,
    HOST_CPU_IRQ,
    HOST_CPU_SOFTIRQ,
    HOST_CPU_STEAL,
    HOST_CPU_GUEST,
    HOST_CPU_GUEST_NICE,
    HOST_CPU_N_MODES,
};

/* One CPU's line; old kernels give fewer modes. */
struct host_cpu_line {
    uint64_t id;
    size_t n_modes;
    uint64_t ticks[HOST_CPU_N_MODES];
};

/* "cpu0 1266 0 1180 85363 39 0 6 115 0 0"; 0 or -EINVAL. */
int host_cpu_parse(const char *line, struct host_cpu_line *ret_line);

/* Takes over newer readings. The kernel's idle and iowait counters now and then step back by a few
 * ticks, which Prometheus would take for a restart: such a counter stays where it is. A CPU whose
 * idle time falls by three seconds was unplugged and plugged in again: it starts afresh. */
void host_cpu_follow(struct host_cpu_line *kept, const struct host_cpu_line *seen,
                     uint64_t ticks_per_second);
