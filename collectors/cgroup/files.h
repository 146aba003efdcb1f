#pragma once

#include <stdbool.h>

#include "collectors/cgroup/stats.h"

/* The files of a cgroup that are worth reading: which hierarchy has them and what they say. */

/* Bits. In v1 each controller may have a hierarchy of its own; in v2 one hierarchy has all. */
enum cgroup_controller {
    CGROUP_CPU = 1 << 0,
    CGROUP_CPUACCT = 1 << 1, /* in v2: the times in cpu.stat, which need no controller */
    CGROUP_MEMORY = 1 << 2,
    CGROUP_IO = 1 << 3, /* in v1: blkio */
    CGROUP_PIDS = 1 << 4,
    CGROUP_CORE = 1 << 5, /* v2 only: pressure and cgroup.stat, which need no controller */
};

/* Who wants a file. */
enum cgroup_reader {
    CGROUP_FOR_CGROUP = 1 << 0,
    CGROUP_FOR_CONTAINER = 1 << 1,
    CGROUP_FOR_RUN = 1 << 2, /* of an application that is being profiled: often, so the least */
    CGROUP_FOR_BOTH = CGROUP_FOR_CGROUP | CGROUP_FOR_CONTAINER,
    CGROUP_FOR_ALL = CGROUP_FOR_BOTH | CGROUP_FOR_RUN,
};

struct cgroup_file {
    const char *name;
    bool unified; /* of v2 */
    bool limit;   /* changes rarely */
    enum cgroup_controller controller;
    enum cgroup_reader readers;
    const char *unless; /* not read where this file, the row before, can be */
    int (*parse)(const char *text, struct cgroup_stats *out);
};

enum { CGROUP_MAX_FILES = 64 }; /* bits of a mask */

extern const struct cgroup_file cgroup_files[];
extern const size_t cgroup_n_files;
