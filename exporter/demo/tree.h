#pragma once

#include "exporter/core/buf.h"
#include "exporter/core/error.h"
#include "exporter/demo/model.h"

/* A private directory for as long as the process runs. It is locked, and the lock ends with the
 * process: a directory without a lock is stale. */
struct demo_dir {
    char *path;
    int fd;
};

/* Creates a directory in the first of `parents` (NULL-terminated) that allows it, and removes stale
 * ones there. */
int demo_dir_init(struct demo_dir *dir, const char *const *parents, struct error *err);

/* Removes the directory with its content. */
void demo_dir_finish(struct demo_dir *dir);

/* A file with more than one number. The length of its text never changes, so that it can be
 * overwritten while it is being read. */
struct demo_text {
    const char *path;
    void (*write)(const struct demo_model *model, struct buf *out);
};

/* Ends with a row without a path. */
extern const struct demo_text demo_texts[];

/* The files of /proc, /sys and /etc on the simulated board. */
struct demo_tree;

/* Writes all files below `path`, which must outlive the tree. The caller destroys it; the files
 * stay. */
int demo_tree_create(const char *path, const struct demo_model *model, struct demo_tree **ret_tree,
                     struct error *err);
void demo_tree_destroy(struct demo_tree *tree); /* accepts NULL */

/* Writes the state of the model to the files, in place: open files show the change. */
int demo_tree_update(struct demo_tree *tree, const struct demo_model *model, struct error *err);
