#pragma once

#include <stdint.h>

#include "collectors/source/procfs.h"

/* Takes over newer readings. The kernel's idle and iowait counters now and then step back by a few
 * ticks, which Prometheus would take for a restart: such a counter stays where it is. A CPU whose
 * idle time falls by three seconds was unplugged and plugged in again: it starts afresh. */
void host_cpu_follow(struct cpu_stat_line *kept, const struct cpu_stat_line *seen,
                     uint64_t ticks_per_second);
