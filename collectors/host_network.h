#pragma once

#include <stdint.h>

#include "collectors/scan.h"

enum { HOST_NETWORK_FIELDS = 16 };

/* One device's line of /proc/net/dev. */
struct host_network_line {
    struct scan_word device;
    uint64_t fields[HOST_NETWORK_FIELDS];
};

/* "  eth0: 65431250 1543 …"; the number may follow the colon at once. 0 or -EINVAL. */
int host_network_parse(const char *line, struct host_network_line *ret_line);
