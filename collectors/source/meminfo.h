#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/scan.h"

/* One line of /proc/meminfo. */
struct meminfo_line {
    struct scan_word key; /* without the colon */
    uint64_t value;
    bool kilobytes; /* else a bare number, as the counts of huge pages are */
};

/* "Active(anon):  1164 kB"; 0 or -EINVAL. */
int meminfo_parse(const char *line, struct meminfo_line *ret_line);
