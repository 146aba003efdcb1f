#pragma once

#include "exporter/core/buf.h"
#include "exporter/metrics/exposition.h"

/* Appends the page of `parts` to `out` in one piece. */
static inline void exposition_text(struct buf *out, struct exposition_choice choice,
                                   struct exposition_part *const *parts, size_t n_parts,
                                   uint64_t *duplicates) {
    struct exposition_page page CLEANUP_EXPOSITION_PAGE = {0};
    exposition_page_write(&page, choice, parts, n_parts, duplicates);
    buf_reserve(out, page.len);
    for (size_t i = 0; i < page.n_pieces; i++) {
        buf_add(out, page.pieces[i].iov_base, page.pieces[i].iov_len);
    }
}
