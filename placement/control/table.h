#pragma once

#include <stddef.h>

#include "exporter/core/arena.h"
#include "exporter/core/error.h"
#include "placement/control/config.h"

/* Reads what a sweep of `waap run` has measured, the list "sweep" of a summary:
 *     {"sweep": [{"knobs": {"res": 480}, "measures": {"fps": 14.2}}, …]}
 * into entries sorted by the position of `loop`'s knob; those of one position are averaged. `text`
 * is overwritten. -EINVAL where it is none, has no such knob or measure, or fewer than two
 * positions. */
int control_table_parse(char *text, size_t len, const struct control_loop_config *loop,
                        const char *measure, struct arena *arena,
                        const struct control_entry **ret_entries, size_t *ret_n, struct error *err);
