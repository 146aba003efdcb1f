#pragma once

#include "exporter/core/error.h"
#include "exporter/demo/model.h"

/* The files of /proc, /sys and /etc that collectors would find on the board of demo_model.h. */
struct demo_tree;

/* Writes them all below `path`, which must outlive the tree; `boot_seconds` is when, in seconds
 * since 1970, the board started. The caller destroys it; the files stay. */
int demo_tree_create(const char *path, double boot_seconds, const struct demo_model *model,
                     struct demo_tree **ret_tree, struct error *err);
void demo_tree_destroy(struct demo_tree *tree); /* accepts NULL */

/* Brings the files to what the model says, in place: who has one open sees the change. */
int demo_tree_update(struct demo_tree *tree, const struct demo_model *model, struct error *err);
