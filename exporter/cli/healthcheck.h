#pragma once

#include "collectors/collector.h"

/* `waap healthcheck [flags of serve]`: asks the daemon on this machine whether it is healthy, for
 * containers without a shell. Without flags it takes those of process 1, where that is `waap
 * serve`, as in a container. Returns the exit code: 0, 1 where nobody answers well, 2 for wrong
 * flags. */
int healthcheck_main(const struct collector *const *collectors, int argc, char **argv);

/* Whether what a server answered says that it is alive: an HTTP status below 500, as a password or
 * certificate that is missing is not the server's fault. */
bool healthcheck_is_good(const char *answer);
