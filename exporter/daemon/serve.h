#pragma once

#include "collectors/collector.h"

/* `waap serve`: runs the daemon with these collectors until a signal stops it. Returns the exit
 * code: 0, 1 if it cannot start, 2 if the configuration is wrong. */
int serve_main(const struct collector *const *collectors, int argc, char **argv);
