#pragma once

#include <stdbool.h>

#include "collectors/scan.h"

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
