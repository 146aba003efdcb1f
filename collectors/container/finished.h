#pragma once

#include "collectors/container/metrics.h"

/* What one container used. */
struct container_use {
    double cpu_seconds;
    double lifetime_seconds;
    double joules;
};

/* What containers that are gone have used, by image: also those that came and went between two
 * scrapes. A zeroed struct has seen none. */
struct container_finished {
    struct container_finished_row {
        char *image;
        struct labels *labels;
        double n;
        struct container_use use;
        double left_cpu_seconds; /* whose energy is not known yet */
    } * rows;
    size_t n_rows, cap_rows;
};

void container_finished_finish(struct container_finished *finished);

/* Counts one container; images beyond the first 256 are counted as "other". `left_cpu_seconds`
 * of its CPU time are without their energy so far. */
void container_finished_count(struct container_finished *finished, const char *image,
                              const struct container_use *use, double left_cpu_seconds);

/* `energy`: that is measured here. */
void container_finished_add(const struct container_finished *finished,
                            const struct metric_desc *descs, bool energy, struct snapshot *out);
