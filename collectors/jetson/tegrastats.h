#pragma once

#include "collectors/collector.h"
#include "collectors/jetson/board.h"
#include "collectors/source/label_pool.h"
#include "collectors/source/tegrastats_line.h"

/* tegrastats as the second source of the `jetson` collector: it adds only what the files
 * lack. */

/* Whether the setting names a program (it is not "off", or "auto": where the program is found and
 * can add something). Then there is a source even if this is no Jetson, and it fails if the program
 * does not run. */
bool jetson_tegrastats_named(const struct settings *settings);

/* Adds to a snapshot the values of a line of tegrastats that the snapshot lacks. `pool` keeps
 * the labels. */
void jetson_fill(const struct tegrastats_line *line, const struct jetson_board *board,
                 struct label_pool *pool, struct snapshot *out);
