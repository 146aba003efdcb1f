#pragma once

#include "collectors/cgroup_tree.h"

/* One cgroup, wherever the hierarchies have it: a directory descriptor each, so that reading a file
 * is one openat, and nothing is read from a namesake that took its place. */
struct cgroup_place {
    int fds[CGROUP_MAX_HIERARCHIES]; /* -1: not in that hierarchy */
    uint64_t inodes[CGROUP_MAX_HIERARCHIES];
    uint64_t missing;   /* files that are not there: a bit per row of cgroup_files */
    int64_t refresh_ns; /* when to look for those again and to read the limits again */
    double limits[CGROUP_N_LIMITS];
};

void cgroup_place_init(struct cgroup_place *place);
void cgroup_place_finish(struct cgroup_place *place);

/* Makes sure that the place has the cgroup `path` of row `row`, which has that inode (0: not
 * known). What was open and is another cgroup is closed first. 0 or a negative errno. */
int cgroup_place_enter(struct cgroup_place *place, const struct cgroup_tree *tree, size_t row,
                       const char *path, uint64_t inode);

/* Closes what the place has of that row. */
void cgroup_place_leave(struct cgroup_place *place, size_t row);

/* Reads the files that `reader` wants into `out`, which is reset first. What is missing is no
 * failure; what cannot be read or understood is worded once, and the rest goes on. `scratch` is for
 * the texts. */
int cgroup_place_read(struct cgroup_place *place, const struct cgroup_tree *tree,
                      enum cgroup_reader reader, int64_t now_ns, struct buf *scratch,
                      struct cgroup_stats *out, struct error *err);

/* Whether an errno (negative) only says that a cgroup or one of its files is not there. */
bool cgroup_place_absent(int result);
