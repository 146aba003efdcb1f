#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"

/* Memory that is taken piece by piece and given back all at once; pieces do not move. Reused, it
 * settles at the most it ever held. A zeroed struct is empty. */
struct arena {
    struct arena_block *first;
    struct arena_block *current;
    size_t taken; /* bytes since the last reset */
    size_t max;   /* of those; 0: no limit */
};

/* `n` bytes, aligned for pointers and numbers; NULL only if they are beyond the limit. */
void *arena_take(struct arena *arena, size_t n);

/* A copy of `n` bytes. */
void *arena_copy(struct arena *arena, const void *data, size_t n);

/* Counts `n` bytes that the caller keeps elsewhere; false: they are beyond the limit. */
bool arena_charge(struct arena *arena, size_t n);

/* Words a limit that was reached; -EFBIG. */
int arena_fail(const struct arena *arena, struct error *err);

/* Takes all back and keeps it for later pieces, up to `max_kept` bytes. */
void arena_reset(struct arena *arena, size_t max_kept);

/* Frees everything. */
void arena_finish(struct arena *arena);
#define CLEANUP_ARENA CLEANUP(arena_finish)
