#pragma once

#include "collectors/collector.h"

/* `waap check-config FILE...`: says for each file "FILE: ok" or everything that is wrong with it.
 * Returns the exit code: 0, or 2. */
int check_config_main(const struct collector *const *collectors, int argc, char **argv);
