#pragma once

#include "collectors/jetson/board.h"
#include "collectors/source/label_pool.h"
#include "collectors/source/tegrastats_line.h"

/* Adds to a snapshot what a line of tegrastats tells and the snapshot does not hold. `pool` keeps
 * the labels. */
void jetson_fill(const struct tegrastats_line *line, const struct jetson_board *board,
                 struct label_pool *pool, struct snapshot *out);

/* Whether the snapshot holds a sample of that family; `labels` NULL: any. */
bool jetson_snapshot_has(const struct snapshot *snapshot, const struct metric_desc *desc,
                         const struct labels *labels);
