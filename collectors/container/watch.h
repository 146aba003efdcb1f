#pragma once

#include <stdbool.h>

/* Directories of cgroups that are watched for others being made or removed in them, and cgroups
 * that are watched for their last process leaving (inotify). */
struct container_watch;

/* Paths are below `root`, a hierarchy that has all containers. `unified` is the v2 hierarchy, where
 * the kernel tells that a cgroup has become empty: the same, another one that is watched beside it,
 * or NULL. NULL where the kernel grants no inotify or memory is out. */
struct container_watch *container_watch_create(const char *root, const char *unified);
void container_watch_destroy(struct container_watch *watch); /* accepts NULL */

/* Watches the directory `path` ("/system.slice"; "": the root), if it is not yet. */
void container_watch_add(struct container_watch *watch, const char *path);

/* Watches whether anything is in the cgroup `path`. False where that cannot be watched (yet). */
bool container_watch_add_cgroup(struct container_watch *watch, const char *path);

/* Stops watching the cgroup `path`. */
void container_watch_drop(struct container_watch *watch, const char *path);

/* The descriptor that is readable while there is something to be told. */
int container_watch_fd(const struct container_watch *watch);

typedef void container_watch_event(void *context, const char *path);

/* What is called: */
struct container_watch_events {
    container_watch_event *appeared; /* a directory; where there are two hierarchies, twice */
    container_watch_event *vanished;
    container_watch_event *changed; /* the first process came into a cgroup, or the last one left */
};

/* Tells of all that has happened, in order, without waiting. True: something was lost or could not
 * be watched, and the whole tree is to be looked at. */
bool container_watch_read(struct container_watch *watch,
                          const struct container_watch_events *events, void *context);
