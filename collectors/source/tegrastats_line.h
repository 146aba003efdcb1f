#pragma once

#include <stdbool.h>
#include <stddef.h>

/* One line of NVIDIA's tegrastats, of any release from L4T 24 to 39, in base units: bytes, hertz,
 * watts, degrees Celsius, ratios from 0 to 1. Absent is NAN, or not in the list; names are lower
 * case. The values of a line depend on the board, the release, the rights of the program and the
 * moment. */

enum {
    TEGRASTATS_MAX_CPUS = 32,
    TEGRASTATS_MAX_GPCS = 16,
    TEGRASTATS_MAX_ENGINES = 32,
    TEGRASTATS_MAX_ZONES = 32,
    TEGRASTATS_MAX_RAILS = 32,
    TEGRASTATS_NAME_SIZE = 32,
};

struct tegrastats_memory {
    double used_bytes;
    double total_bytes;
    double free_block_bytes; /* the largest order of which blocks are free, not all that is free */
    double free_blocks;      /* how many of them */
    double cached_bytes;     /* of swap */
};

struct tegrastats_cpu {
    double online; /* 0 or 1 */
    double load_ratio;
    double frequency_hertz;
};

struct tegrastats_engine {
    char name[TEGRASTATS_NAME_SIZE]; /* "nvenc0", "nvdla1", "pva0", "vic", "ape", "gr3d_pci", … */
    double active;                   /* 0: clock gated, 1: clocked */
    double load_ratio;
    double frequency_hertz;
};

struct tegrastats_zone {
    char name[TEGRASTATS_NAME_SIZE];
    double celsius;
};

struct tegrastats_rail {
    char name[TEGRASTATS_NAME_SIZE];
    double watts;         /* negative on some gated rails */
    double average_watts; /* over the whole life of the tegrastats process, not over a window */
};

struct tegrastats_line {
    struct tegrastats_memory ram, swap, iram, carveout;
    double emc_load_ratio;
    double emc_frequency_hertz;
    double gpu_load_ratio;
    double gpu_frequency_hertz; /* of the fastest cluster; 0: all are gated */
    double mts_foreground_ratio;
    double mts_background_ratio;
    double edp_limit_hertz;
    double throttle_events;

    size_t n_cpus; /* the index is the number of the CPU */
    struct tegrastats_cpu cpus[TEGRASTATS_MAX_CPUS];
    size_t n_gpcs; /* the GPU's clusters; boards with one clock have one */
    double gpc_frequency_hertz[TEGRASTATS_MAX_GPCS];
    size_t n_engines;
    struct tegrastats_engine engines[TEGRASTATS_MAX_ENGINES];
    size_t n_zones;
    struct tegrastats_zone zones[TEGRASTATS_MAX_ZONES];
    size_t n_rails;
    struct tegrastats_rail rails[TEGRASTATS_MAX_RAILS];

    size_t n_unknown; /* tokens and list elements that were unknown or too many */
};

/* Reads the `len` bytes at `text`, one line with or without its end. An unknown token is
 * skipped. Values that tegrastats prints without knowing them are skipped: a gated sensor's -256 C,
 * the dummy zone PMIC, rails without connection, the load of a memory controller whose clock it
 * cannot read. Of equal names the first counts. -EINVAL, with the content of `*ret_line`
 * undefined, if this is not a record (a message, an empty line, the end of a line) or two records
 * joined. */
int tegrastats_line_parse(const char *text, size_t len, struct tegrastats_line *ret_line);
