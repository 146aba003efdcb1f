#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"

/* Opens the program at `path`, an absolute one, for child_start. The daemon may be root, so
 * other users must not be able to choose what it runs: the file and every directory above it must
 * belong to root or to the daemon's user and be writable by the owner only, and none may be a
 * symbolic link. Returns a descriptor of the file that was checked, or a negative errno; -EPERM if
 * the path is not trusted. */
int program_open(const char *path, struct error *err);

/* A child process whose output we read: started without a shell, in its own process group, with an
 * empty standard input, its standard error discarded and a fixed environment. It never outlives us.
 * All calls come from one thread. */
struct child {
    pid_t pid;     /* 0: none */
    int output_fd; /* what it prints; does not block */
    int leash_fd;  /* closed with us, which kills it */
};

#define CHILD_NONE ((struct child){.output_fd = -1, .leash_fd = -1})

/* Starts the program that `program_fd` refers to (see program_open); argv[0] is its name. */
int child_start(struct child *child, int program_fd, const char *const *argv, struct error *err);

/* Sends a signal to its whole group, if there is one. */
void child_signal(const struct child *child, int signal);

/* Whether it has ended, with the status of waitpid(2); then only its output is left to read. */
bool child_ended(struct child *child, int *ret_status);

/* Ends it by SIGTERM, then SIGKILL, within about a tenth of a second, and closes its output.
 * Accepts CHILD_NONE and leaves it. */
void child_finish(struct child *child);
