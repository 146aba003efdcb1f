#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exporter/metrics/exposition.h"

/* Appends the sample lines of one family that several parts have: `blocks[i]` is what part i has of
 * it, or NULL. The first one's type counts. Of a series in several parts the earliest stays; a
 * histogram or summary is one thing, so all its samples come from one part. What part i loses is
 * added to `dropped[i]`. */
void exposition_merge(struct buf *out, const struct exposition_block *const *blocks,
                      size_t n_blocks, uint64_t *dropped);
