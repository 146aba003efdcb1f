#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exporter/core/scan.h"

enum { DISKSTATS_MIN_FIELDS = 11, DISKSTATS_MAX_FIELDS = 17 };

/* One line of /proc/diskstats. Kernels before 4.18 have 11 fields, before 5.5 they have 15. */
struct diskstats_line {
    struct scan_word device;
    size_t n_fields;
    uint64_t fields[DISKSTATS_MAX_FIELDS];
};

/* "254 0 vda 32454 8659 …"; 0 or -EINVAL. */
int diskstats_parse(const char *line, struct diskstats_line *ret_line);
