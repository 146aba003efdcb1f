#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The containers that processes run in, each looked up once: for the clients of a GPU, which are
 * listed over and over. A zeroed struct knows none. */
struct container_homes {
    struct container_home *rows; /* sorted by pid */
    size_t n_rows, cap_rows;
    unsigned round;
};

/* Begins a list of processes: those that were not in the one before are forgotten. */
void container_homes_begin(struct container_homes *homes);

/* The path of the cgroup of the container that process `pid` (as seen under `procfs`) runs in, the
 * label `id` of its metrics; NULL where it is in none. It is good until the next list begins. */
const char *container_homes_see(struct container_homes *homes, const char *procfs, pid_t pid);

/* The same for a process of this list; NULL also where it was not in it. */
const char *container_homes_find(const struct container_homes *homes, pid_t pid);

void container_homes_finish(struct container_homes *homes);
