#pragma once

#include <stdint.h>

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

/* In bytes; NAN: not there. Lines that are not understood are passed over. */
void jetson_meminfo_parse(const char *text, double ret_bytes[static MEMINFO_N_FIELDS]);

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
