#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/collector.h"
#include "exporter/core/buf.h"

struct jetson_soc {
    const char *name;  /* "tegra194" */
    const char *gpu;   /* as CUDA calls it */
    bool engine_loads; /* tegrastats knows the load of its engines */
};

/* What is known of the machine from the start, and what all parts share. */
struct jetson_board {
    bool detected;                /* this is a Jetson: there are files to read */
    const struct jetson_soc *soc; /* NULL: not known */
    struct labels *info;          /* of jetson_info */
    struct labels *gpu;           /* gpu="0" */
    int64_t peak_window_ns;
    int64_t max_gap_ns; /* samples further apart are not joined */
    bool compat;        /* also the tegra_* names */
};

/* Looks at the device tree and the release file. -ENODEV where this is no Jetson; the board is then
 * one that was not detected, and otherwise as good. */
int jetson_board_init(struct jetson_board *board, const struct collector_env *env,
                      struct error *err);
void jetson_board_finish(struct jetson_board *board);

/* The chip in the device tree's "compatible", a list of strings that end in NUL; NULL if none of
 * them is a Tegra that we know. */
const struct jetson_soc *jetson_soc_parse(const char *text, size_t len);

/* Appends "36.4.4" for "# R36 (release), REVISION: 4.4, GCID: …"; -EINVAL. */
int jetson_l4t_parse(const char *text, struct buf *out);
