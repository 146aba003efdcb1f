#pragma once

#include <dirent.h>

#include "collectors/cgroup/parse.h"
#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* The mounted cgroup hierarchies. */

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
    size_t primary; /* the row that has the cgroup of every container */
};

/* Opens what is mounted at `cgroupfs`: the v2 hierarchy itself, or one directory per v1 hierarchy,
 * named after its controllers, and maybe a v2 one. -ENODEV if there is none. */
int cgroup_tree_open(struct cgroup_tree *tree, const char *cgroupfs, struct error *err);
void cgroup_tree_close(struct cgroup_tree *tree);

/* The controllers in a list such as "cpu,cpuacct", as bits of enum cgroup_controller; those that
 * are not read are left out. */
unsigned cgroup_controllers(const char *names, size_t len);

/* "v1", "v2" or "hybrid". */
const char *cgroup_mode_name(enum cgroup_mode mode);

/* Called for a cgroup: its path from the root ("/a/b"), inode and depth (1 below the root). Returns
 * whether to go on below it. */
typedef bool cgroup_visit(void *context, const char *path, uint64_t inode, size_t depth);

/* Walks over all cgroups below `from` ("/a"; "": the root) in one hierarchy. Cgroups
 * that vanish meanwhile are skipped. `path` is scratch. 0, or the errno of opening `from`. */
int cgroup_tree_walk(const struct cgroup_hierarchy *hierarchy, const char *from, struct buf *path,
                     cgroup_visit *visit, void *context, struct error *err);

/* Opens the directory `name` below `parent`. The caller closes it. NULL with errno. */
DIR *cgroup_open_directory(int parent, const char *name);

/* Limits the files that are kept open: reading them again is three times as fast, but each costs
 * about 5 KiB of kernel memory, which is charged to us. Shared by all places that use it. */
struct cgroup_hot {
    size_t n_kept;
    size_t max_kept;
};

/* One cgroup in all hierarchies: a directory descriptor each, so that reading a file is one openat,
 * and a cgroup that was created later under the same path is never read. */
struct cgroup_place {
    int fds[CGROUP_MAX_HIERARCHIES]; /* -1: not in that hierarchy */
    uint64_t inodes[CGROUP_MAX_HIERARCHIES];
    uint64_t missing;    /* files that do not exist: a bit per row of cgroup_files */
    int64_t refresh_ns;  /* when to try those and the limits again */
    int64_t interval_ns; /* from the last such time to the next */
    double limits[CGROUP_N_LIMITS];
    int *kept;              /* open files, by row of cgroup_files, -1 for none; NULL: none at all */
    struct cgroup_hot *hot; /* where those are counted */
};

void cgroup_place_init(struct cgroup_place *place);
void cgroup_place_finish(struct cgroup_place *place);

/* Opens the cgroup `path` of row `row`, which has that inode (0: not known), unless it is open.
 * Another cgroup is closed first. 0 or a negative errno. */
int cgroup_place_enter(struct cgroup_place *place, const struct cgroup_tree *tree, size_t row,
                       const char *path, uint64_t inode);

/* Closes the cgroup of that row. */
void cgroup_place_leave(struct cgroup_place *place, size_t row);

/* The arguments of reading. */
struct cgroup_reading {
    const struct cgroup_tree *tree;
    enum cgroup_reader reader;
    struct cgroup_hot *hot; /* keeps open what is read every time, outlives the place; or NULL */
    struct buf *scratch;    /* for the texts */
};

/* Reads the reader's files into `out`, which is reset first. A missing file is not an error; the
 * first one that cannot be read or parsed is reported, and the others are still read. */
int cgroup_place_read(struct cgroup_place *place, const struct cgroup_reading *reading,
                      int64_t now_ns, struct cgroup_stats *out, struct error *err);

/* Whether a negative errno means that a cgroup or one of its files does not exist. */
bool cgroup_place_absent(int result);
