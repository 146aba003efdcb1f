#pragma once

#include "collectors/cgroup/stats.h"

/* Pure readers of the texts of cgroup files, v1 and v2. What a text lacks stays as it was; lines
 * and keys that are not known are skipped. 0, or -EINVAL where something known is not understood
 * (the rest is still taken), or -ENOMEM. */

/* A line "key value" of a file; the value is divided by `divisor`. */
struct cgroup_key {
    const char *key;
    unsigned char len;
    unsigned char value; /* enum cgroup_value */
    double divisor;
};

#define CGROUP_KEY(text, id, per)                                                                  \
    { text, sizeof(text) - 1, id, per }

/* Lines "usage_usec 1234"; `keys` best stand in the kernel's order. */
int cgroup_parse_keyed(const char *text, const struct cgroup_key *keys, size_t n_keys,
                       struct cgroup_stats *out);

/* "1234", "-1" or "max"; both of the latter are infinite, as is what v1 prints for no limit. */
int cgroup_parse_scalar(const char *text, enum cgroup_value value, double divisor,
                        struct cgroup_stats *out);

/* "50000 100000" or "max 100000". */
int cgroup_parse_cpu_max(const char *text, struct cgroup_stats *out);

/* "some avg10=0.00 … total=1234" and "full …"; the latter goes to `waiting` + 1. */
int cgroup_parse_pressure(const char *text, enum cgroup_value waiting, struct cgroup_stats *out);

/* v2: "8:0 rbytes=1 wbytes=2 …". */
int cgroup_parse_io_stat(const char *text, struct cgroup_stats *out);

/* v1: "8:0 Read 1", "8:0 Write 2", …, "Total 3"; `read` is where reads go, writes follow it. */
int cgroup_parse_blkio(const char *text, enum cgroup_io_value read, enum cgroup_io_value discard,
                       struct cgroup_stats *out);
