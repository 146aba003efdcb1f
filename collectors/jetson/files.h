#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/buf.h"
#include "exporter/core/scan.h"

/* Parsers of files that only this collector reads. */

/* What matters here of /proc/meminfo. */
enum jetson_meminfo {
    MEMINFO_BUFFERS,
    MEMINFO_CACHED,
    MEMINFO_FREE,
    MEMINFO_NVMAP_USED,
    MEMINFO_SWAP_CACHED,
    MEMINFO_SWAP_FREE,
    MEMINFO_SWAP_TOTAL,
    MEMINFO_TOTAL,
    MEMINFO_N_FIELDS,
};

/* In bytes; NAN: not there. Lines that cannot be parsed are skipped. */
void jetson_meminfo_parse(const char *text, double ret_bytes[static MEMINFO_N_FIELDS]);

/* The bytes in use, without buffers and page cache, as tegrastats counts them; or NAN. */
double jetson_meminfo_used(const double bytes[static MEMINFO_N_FIELDS]);

/* The largest blocks that are free in one piece. */
struct jetson_free_blocks {
    unsigned order; /* each of 2^order pages */
    uint64_t n_blocks;
};

/* /proc/buddyinfo, "Node 0, zone   Normal   1204   1021 …" per zone; -ENODATA if nothing is free,
 * -EINVAL where a line is not understood. */
int jetson_buddyinfo_parse(const char *text, struct jetson_free_blocks *ret_blocks);

/* nvmap's size of the on-chip memory, "0x0003f000"; -EINVAL. */
int jetson_iram_parse(const char *text, double *ret_bytes);

/* The number of the power mode in /var/lib/nvpmodel/status ("pmode:0002"); -EINVAL. */
int jetson_mode_parse(const char *text, unsigned *ret_id);

/* Appends the name of that mode in /etc/nvpmodel.conf ("< POWER_MODEL ID=2 NAME=MODE_15W_6CORE >");
 * -ENOENT if it has none. */
int jetson_mode_name(const char *text, unsigned id, struct buf *out);

/* A row of nvmap's list of clients. */
struct jetson_nvmap_line {
    bool total;               /* the last row, which has no process */
    struct scan_word process; /* its name, which may hold blanks */
    uint64_t pid;
    double bytes;
};

/* "user            python3    12345    1234567K", "total    2345678K"; the head line and kernel
 * clients without number are -ENODATA, anything else -EINVAL. */
int jetson_nvmap_parse(const char *line, struct jetson_nvmap_line *ret_line);

/* The size in the last row of the list; -ENODATA if there is none. */
int jetson_nvmap_total(const char *text, double *ret_bytes);

/* Appends the name of a thermal zone that stays the same from one L4T release to the next: its type
 * up to the first '-' or '_', in lower case. "CPU-therm" and "cpu-thermal" are both "cpu". */
void jetson_zone_name(struct buf *out, const char *type);
