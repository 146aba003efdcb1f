#pragma once

#include <stdbool.h>

/* Directories of cgroups that are watched for others being made or removed in them (inotify). */
struct container_watch;

/* Paths are below `root`. NULL where the kernel grants no inotify or memory is out. */
struct container_watch *container_watch_create(const char *root);
void container_watch_destroy(struct container_watch *watch); /* accepts NULL */

/* Watches the directory `path` ("/system.slice"; "": the root), if it is not yet. */
void container_watch_add(struct container_watch *watch, const char *path);

typedef void container_watch_event(void *context, const char *path);

/* Tells of every directory that came and went, in order, without waiting. True: something was lost
 * or could not be watched, and the whole tree is to be looked at. */
bool container_watch_read(struct container_watch *watch, container_watch_event *appeared,
                          container_watch_event *vanished, void *context);
