#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { JETSON_RAIL_MAX_MEMBERS = 6 };

/* What the rails of a module add up to differs from board to board: some have one for their whole
 * input, on others a part feeds the rest. Finds the rails whose sum is the module's power among
 * `n` names; returns how many and their indexes, 0 if no rule fits. */
size_t jetson_rail_rule(const char *const *names, size_t n,
                        size_t ret_members[static JETSON_RAIL_MAX_MEMBERS]);

/* Whether the rail feeds the GPU and nothing else. */
bool jetson_rail_is_gpu(const char *name);

/* Whether the rail feeds the GPU, alone or with others. */
bool jetson_rail_feeds_gpu(const char *name);
