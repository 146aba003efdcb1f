#pragma once

#include "collectors/collector.h"

/* `waap serve`: runs the daemon with these collectors until it is told to stop. Returns the exit
 * code: 0, 1 where it could not start, 2 where the configuration is wrong. */
int serve_main(const struct collector *const *collectors, int argc, char **argv);
