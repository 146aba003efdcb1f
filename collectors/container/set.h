#pragma once

#include "collectors/cgroup/tree.h"
#include "collectors/container/item.h"

/* The containers that exist. The kernel tells of cgroups that come and go by inotify; now and then,
 * and when it has lost count, all of the tree is walked. */
struct container_set;

struct container_set_config {
    const struct cgroup_tree *tree;
    size_t max_containers;
    int64_t peak_window_ns;
    /* The first process came into it, or the last one left: what it has used is final then. */
    void (*changed)(void *context, struct container *container);
    void (*gone)(void *context, struct container *container); /* before it is freed */
    void *context;
};

/* -ENOMEM; a kernel that grants no inotify is no failure: the tree is walked every time then. */
int container_set_create(const struct container_set_config *config, struct container_set **ret_set,
                         struct error *err);
void container_set_destroy(struct container_set *set); /* accepts NULL; `gone` is not called */

/* Takes in what has come and gone; unless `all`, a walk that is due may be put off a little. 0, or
 * why the tree could not be walked, or -E2BIG where there are too many containers (the rest is
 * kept). */
int container_set_update(struct container_set *set, bool all, int64_t now_ns, struct error *err);

/* The descriptor that is readable while containers have come, gone or changed; -1: there is none.
 */
int container_set_fd(const struct container_set *set);

/* Takes in what is known without looking at the tree: for when the descriptor is readable. */
void container_set_wake(struct container_set *set);

/* Drops those that were found to be gone, without waiting for the next update. */
void container_set_drop_gone(struct container_set *set);

size_t container_set_n(const struct container_set *set);
struct container *container_set_at(const struct container_set *set, size_t i);
