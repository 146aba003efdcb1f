#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/channel/knob.h"
#include "exporter/core/arena.h"
#include "exporter/core/buf.h"
#include "exporter/core/error.h"

/* The command line of `waap run`. */

/* A knob to be swept over values. */
struct run_sweep {
    const char *name;
    struct param_value *values;
    size_t n_values;
};

struct run_options {
    const char *file;           /* NULL: none */
    const char *out_dir;        /* NULL: not said */
    const char *image;          /* NULL: not said */
    const char *const *command; /* behind "--"; NULL: not said */
    const char **targets;       /* names or numbers; n_targets 0: all */
    size_t n_targets;
    struct run_sweep *sweeps;
    size_t n_sweeps;
    bool force; /* a record that is there may be replaced */
    bool help;
};

/* Reads it; argv[0] is passed over. What is made lies in the arena. -EINVAL with the reason. */
int run_options_read(int argc, char **argv, struct arena *arena, struct run_options *ret_options,
                     struct error *err);

/* What --help says. */
extern const char run_options_help[];
