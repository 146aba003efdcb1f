#pragma once

#include "collectors/cgroup/files.h"
#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* The hierarchies of cgroups that this machine has mounted, and walking over them. */

enum cgroup_mode {
    CGROUP_MODE_V1,
    CGROUP_MODE_V2,
    CGROUP_MODE_HYBRID, /* controllers in v1, and a v2 hierarchy beside them */
};

struct cgroup_hierarchy {
    char *path;
    int fd; /* of its root directory, for openat */
    bool unified;
    unsigned controllers; /* of enum cgroup_controller: those that are read here */
};

enum { CGROUP_MAX_HIERARCHIES = 6 };

struct cgroup_tree {
    enum cgroup_mode mode;
    struct cgroup_hierarchy rows[CGROUP_MAX_HIERARCHIES];
    size_t n_rows;
    size_t primary; /* the row where every container has its cgroup */
};

/* Looks at what lies under `cgroupfs`: the v2 hierarchy itself, or one directory per v1 hierarchy,
 * named after its controllers, with or without a v2 one among them. -ENODEV where there is none. */
int cgroup_tree_open(struct cgroup_tree *tree, const char *cgroupfs, struct error *err);
void cgroup_tree_close(struct cgroup_tree *tree);

/* "v1", "v2" or "hybrid". */
const char *cgroup_mode_name(enum cgroup_mode mode);

/* Called for a cgroup: its path from the root ("/a/b"), inode and depth (1 below the root). Returns
 * whether to go on below it. */
typedef bool cgroup_visit(void *context, const char *path, uint64_t inode, size_t depth);

/* Walks over all cgroups below `from` ("/a"; "": the root) in one hierarchy. What vanishes on the
 * way is skipped. `path` is scratch. 0, or the errno of not being able to read the first. */
int cgroup_tree_walk(const struct cgroup_hierarchy *hierarchy, const char *from, struct buf *path,
                     cgroup_visit *visit, void *context, struct error *err);
