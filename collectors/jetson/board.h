#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/collector.h"
#include "collectors/source/tegra.h"
#include "exporter/core/buf.h"

/* What is known of the machine from the start, and what all parts share. */
struct jetson_board {
    bool detected; /* this is a Jetson: there are files to read */
    bool nvml;     /* load and memory of the GPU come from NVML, not from nvmap and files */
    const struct tegra_soc *soc; /* NULL: not known */
    struct labels *info;         /* of jetson_info */
    char *gpu_uuid;              /* "": not known */
    struct labels *gpu;          /* gpu="0" and the uuid */
    struct labels *gpu_info;     /* of gpu_info */
    int64_t peak_window_ns;
    int64_t max_gap_ns; /* samples further apart are not joined */
    uint64_t compat;    /* COMPAT_TEGRA: also the tegra_* names; COMPAT_PROTOTYPE */
};

/* Looks at the device tree and the release file. -ENODEV if this is no Jetson; then `detected`
 * is false and the board is usable all the same. */
int jetson_board_init(struct jetson_board *board, const struct collector_env *env,
                      struct error *err);
void jetson_board_finish(struct jetson_board *board);

/* Gives the GPU another uuid. */
void jetson_board_name_gpu(struct jetson_board *board, const char *uuid);

/* Appends "36.4.4" for "# R36 (release), REVISION: 4.4, GCID: …"; -EINVAL. */
int jetson_l4t_parse(const char *text, struct buf *out);
