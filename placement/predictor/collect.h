#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "exporter/core/error.h"

/* Processes that keep every CPU busy for a share of the time: simulated load. */
struct burner {
    pid_t *children;
    size_t n_children;
};

/* Starts one per CPU, each busy for `percent` of the time; none at 0. They end with this process,
 * however it ends. */
int burner_start(struct burner *burner, double percent, struct error *err);

/* Ends them. */
void burner_stop(struct burner *burner);
#define CLEANUP_BURNER CLEANUP(burner_stop)

/* Measures for `seconds` how busy all CPUs are together, in percent. */
int burner_measure(double seconds, double *ret_percent, struct error *err);

/* `waap place collect --model=FILE.onnx --out=RUNS.csv -- COMMAND...`: measures how long a model's
 * application runs on this node, and appends that to a file for waap place train. Returns the exit
 * code. */
int collect_main(int argc, char **argv);
