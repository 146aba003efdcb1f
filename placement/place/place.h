#pragma once

/* `waap place …`: the service, and `collect`, `simulate` and `train` for its predictor. Returns the
 * exit code. */
int place_main(int argc, char **argv);
