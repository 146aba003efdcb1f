#include "collectors/source/rows.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"

void *rows_find(struct rows *rows, struct scan_word key) {
    for (size_t i = 0; i < rows->n; i++) {
        size_t at = (rows->next + i) % rows->n;
        struct row *row = rows->all[at];
        if (row->key_len == key.len && memcmp(row->key, key.text, key.len) == 0) {
            rows->next = at + 1;
            row->is_new = false;
            row->again = row->round == rows->round;
            row->round = rows->round;
            return row;
        }
    }
    return NULL;
}

void *rows_see(struct rows *rows, struct scan_word key) {
    struct row *row = rows_find(rows, key);
    if (row == NULL && (rows->max == 0 || rows->n < rows->max)) {
        ARRAY_GROW(&rows->all, &rows->cap, rows->n + 1);
        row = rows->all[rows->n++] = mem_zalloc(1, rows->size);
        row->key = mem_strndup(key.text, key.len);
        row->key_len = key.len;
        row->round = rows->round;
        row->is_new = true;
        rows->next = rows->n;
    }
    return row;
}

void rows_unsee(const struct rows *rows, struct row *row) {
    row->round = rows->round - 1;
}

static void destroy(const struct rows *rows, struct row *row) {
    rows->finish(row);
    free(row->key);
    free(row);
}

void rows_sweep(struct rows *rows) {
    size_t kept = 0;
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->all[i]->round == rows->round) {
            rows->all[kept++] = rows->all[i];
        } else {
            destroy(rows, rows->all[i]);
        }
    }
    rows->n = kept;
    rows->next = 0;
    rows->round++;
}

void rows_finish(struct rows *rows) {
    for (size_t i = 0; i < rows->n; i++) {
        destroy(rows, rows->all[i]);
    }
    free(rows->all);
    *rows = (struct rows){.size = rows->size, .finish = rows->finish, .max = rows->max};
}
