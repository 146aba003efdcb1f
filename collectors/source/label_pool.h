#pragma once

#include <stddef.h>

#include "exporter/metrics/labels.h"

/* Label sets that live from one collection to the next: for series that are not worth a place of
 * their own. A zeroed struct is an empty pool. */
struct label_pool {
    struct labels **rows;
    size_t n_rows;
    size_t cap_rows;
};

/* A set of one label, the pool's until it is cleared. */
const struct labels *label_pool_render(struct label_pool *pool, const char *name,
                                       const char *value);

/* Frees the sets and keeps the room for others. */
void label_pool_clear(struct label_pool *pool);
void label_pool_finish(struct label_pool *pool);
