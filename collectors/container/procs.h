#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "exporter/core/buf.h"

/* The processes of a cgroup and of those below it. */
struct container_procs {
    size_t n;
    pid_t first; /* one of them; 0: none that we can see */
};

/* Reads cgroup.procs of the directory and, where it has any, of its children. `scratch` is for the
 * texts. 0 or a negative errno. */
int container_procs_read(int dirfd, struct buf *scratch, struct container_procs *ret_procs);

/* When process `pid` started, in seconds since boot, from the text of /proc/<pid>/stat; negative
 * where it is not understood. */
double container_procs_parse_start(const char *text);

/* When the machine was started, in seconds since 1970; 0 where that is not known. */
double container_procs_boot_time(const char *procfs);
