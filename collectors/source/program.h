#pragma once

#include "exporter/core/error.h"

/* Opens the program at `path`, an absolute one, for child_start. The daemon may be root, so nobody
 * else may be able to choose what it runs: the file and every directory above it must belong to
 * root or to the daemon's own user and be writable by the owner only, and none may be a symbolic
 * link. Returns a descriptor, which keeps the file that was checked whatever happens to its name,
 * or a negative errno; -EPERM if the path is not trusted. */
int program_open(const char *path, struct error *err);
