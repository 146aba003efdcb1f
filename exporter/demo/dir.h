#pragma once

#include "exporter/core/error.h"

/* A directory of our own for as long as we run. It is locked, and the lock ends with the process
 * however that ends: a directory without one is what a crash has left. */
struct demo_dir {
    char *path;
    int fd;
};

/* Makes a directory, for us alone, in the first of `parents` (NULL-terminated) that allows it, and
 * removes what crashed ones have left there. */
int demo_dir_init(struct demo_dir *dir, const char *const *parents, struct error *err);

/* Removes the directory with all that is in it. */
void demo_dir_finish(struct demo_dir *dir);
