#pragma once

#include "collectors/cgroup/tree.h"
#include "collectors/container/item.h"

/* Reads how much CPU time the container has used and what that means for its peak. `keep_open`:
 * the file may be kept for the next time. */
void container_sample_cpu(struct container *container, const struct cgroup_tree *tree,
                          bool keep_open, int64_t now_ns);
