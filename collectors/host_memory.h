#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectors/scan.h"
#include "exporter/core/buf.h"

/* One line of /proc/meminfo. */
struct host_memory_line {
    struct scan_word key; /* without the colon */
    uint64_t value;
    bool kilobytes; /* else a bare number, as the counts of huge pages are */
};

/* "Active(anon):  1164 kB"; 0 or -EINVAL. */
int host_memory_parse(const char *line, struct host_memory_line *ret_line);

/* Appends node_exporter's name for a key: "node_memory_Active_anon_bytes". */
void host_memory_name(struct buf *out, struct scan_word key, bool kilobytes);
