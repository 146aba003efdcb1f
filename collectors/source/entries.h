#pragma once

#include <stddef.h>

#include "exporter/core/cleanup.h"

/* The names in a directory that begin with a prefix, in the order of their numbers: "hwmon2" before
 * "hwmon10". A zeroed struct is empty. */
struct entries {
    char **names;
    size_t n_names;
};

/* Lists `dir`; empty if it cannot be listed. */
void entries_init(struct entries *entries, const char *dir, const char *prefix);
void entries_finish(struct entries *entries);
#define CLEANUP_ENTRIES CLEANUP(entries_finish)
