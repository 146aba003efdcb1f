#pragma once

#include "collectors/collector.h"

/* `waap run`: profiles one application. Returns the exit status. */
int run_main(const struct collector *const *collectors, int argc, char **argv);
