#pragma once

#include <stdint.h>

#include "exporter/core/scan.h"

enum { NET_DEV_FIELDS = 16 };

/* One device's line of /proc/net/dev. */
struct net_dev_line {
    struct scan_word device;
    uint64_t fields[NET_DEV_FIELDS];
};

/* "  eth0: 65431250 1543 …"; the number may follow the colon at once. 0 or -EINVAL. */
int net_dev_parse(const char *line, struct net_dev_line *ret_line);
