#pragma once

#include <stdint.h>

#include "collectors/collector.h"
#include "collectors/jetson/board.h"
#include "collectors/source/label_pool.h"
#include "collectors/source/tegrastats_line.h"

/* tegrastats as the second source of the `jetson` collector: it adds what the files do not tell,
 * and nothing that they do. */
struct jetson_tegrastats;

/* Prepares as the setting says: "off", "auto" (where the program is found and can add something) or
 * a path. The caller destroys it. */
struct jetson_tegrastats *jetson_tegrastats_create(const struct collector_env *env);
void jetson_tegrastats_destroy(struct jetson_tegrastats *source); /* accepts NULL */

/* Whether the setting names a program: then there is a source even if this is no Jetson. */
bool jetson_tegrastats_named(const struct jetson_tegrastats *source);

/* Sees to the program; to be called at sample rate. */
void jetson_tegrastats_sample(struct jetson_tegrastats *source, int64_t now_ns);

/* Adds what is not in the snapshot yet, and how the program does. Fails where the program that the
 * setting names does not run. */
int jetson_tegrastats_add(struct jetson_tegrastats *source, const struct jetson_board *board,
                          int64_t now_ns, struct snapshot *out, struct error *err);

/* Adds to a snapshot what a line of tegrastats tells and the snapshot does not hold. `pool` keeps
 * the labels. */
void jetson_fill(const struct tegrastats_line *line, const struct jetson_board *board,
                 struct label_pool *pool, struct snapshot *out);
