#include "collectors/source/label_pool.h"

#include <stdlib.h>

#include "exporter/core/memory.h"

const struct labels *label_pool_render(struct label_pool *pool, const char *name,
                                       const char *value) {
    ARRAY_GROW(&pool->rows, &pool->cap_rows, pool->n_rows + 1);
    return pool->rows[pool->n_rows++] = labels_render(name, value);
}

void label_pool_clear(struct label_pool *pool) {
    for (size_t i = 0; i < pool->n_rows; i++) {
        labels_destroy(pool->rows[i]);
    }
    pool->n_rows = 0;
}

void label_pool_finish(struct label_pool *pool) {
    label_pool_clear(pool);
    free(pool->rows);
    *pool = (struct label_pool){0};
}
