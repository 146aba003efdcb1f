#pragma once

#include <stdint.h>

#include "exporter/core/buf.h"

/* Simulated runs of well-known models, for a predictor that answers before anything was measured.
 *
 * A run takes
 *
 *     (start + parameters * 4 bytes / reading + MACs / (speed * fitness) / (1 - blocked * load)) *
 * noise
 *
 * with start, reading speed, computing speed and the share of it that other work can take
 * (`blocked`) by kind of device, MACs by model (published figures), a fitness between 0.6 and 1.6
 * by model, as layers of different forms do not keep a processor equally busy, a load between 0 and
 * 100 percent, and 6 % of noise. The sizes of pictures and how full the disk is do not matter. The
 * same seed gives the same runs. */
void simulate_write(uint64_t seed, unsigned n_runs, struct buf *out);

/* `waap place simulate [--runs N] [--seed N]`: prints them as CSV. Returns the exit code. */
int simulate_main(int argc, char **argv);
