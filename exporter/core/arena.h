#pragma once

#include <stddef.h>

#include "exporter/core/cleanup.h"

/* Memory that is taken piece by piece and given back all at once; what was taken stays where it is
 * meanwhile. Used again and again it settles at the most it ever held. A zeroed struct is empty. */
struct arena {
    struct arena_block *first;
    struct arena_block *current;
};

/* `n` bytes, aligned for anything; NULL when memory is out. */
void *arena_take(struct arena *arena, size_t n);

/* A copy of `n` bytes. */
void *arena_copy(struct arena *arena, const void *data, size_t n);

/* Takes all back and keeps it for what comes, up to `max_kept` bytes. */
void arena_reset(struct arena *arena, size_t max_kept);

/* Frees everything. */
void arena_finish(struct arena *arena);
#define CLEANUP_ARENA CLEANUP(arena_finish)
