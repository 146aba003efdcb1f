#pragma once

#include <stdbool.h>
#include <stdint.h>

/* One line of /proc/pressure/… or of a cgroup's *.pressure. */
struct pressure_line {
    bool full;           /* "full": nothing could run; else "some": somebody waited */
    uint64_t total_usec; /* since boot, or since the cgroup was made */
};

/* "some avg10=8.36 avg60=3.70 avg300=1.71 total=14293735"; 0 or -EINVAL. */
int pressure_parse(const char *line, struct pressure_line *ret_line);
