#include "collectors/source/label_pool.h"

#include <stdlib.h>

enum { POOL_MIN_ROWS = 16 };

static bool make_room(struct label_pool *pool) {
    if (pool->n_rows < pool->cap_rows) {
        return true;
    }
    size_t cap = pool->cap_rows == 0 ? POOL_MIN_ROWS : 2 * pool->cap_rows;
    struct labels **rows = realloc(pool->rows, cap * sizeof(*rows));
    if (rows == NULL) {
        return false;
    }
    pool->rows = rows;
    pool->cap_rows = cap;
    return true;
}

const struct labels *label_pool_render(struct label_pool *pool, const char *name,
                                       const char *value) {
    struct labels *labels = make_room(pool) ? labels_render(name, value) : NULL;
    if (labels != NULL) {
        pool->rows[pool->n_rows++] = labels;
    }
    return labels;
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
