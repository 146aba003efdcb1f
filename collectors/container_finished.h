#pragma once

#include "collectors/container_metrics.h"

/* What containers that are gone have used, by image: also those that came and went between two
 * scrapes. A zeroed struct has seen none. */
struct container_finished {
    struct container_finished_row {
        char *image;
        struct labels *labels;
        double n, cpu_seconds, lifetime_seconds;
    } * rows;
    size_t n_rows, cap_rows;
};

void container_finished_finish(struct container_finished *finished);

/* Counts one container; images beyond the first 256 are counted as "other". */
void container_finished_count(struct container_finished *finished, const char *image,
                              double cpu_seconds, double lifetime_seconds);

void container_finished_add(const struct container_finished *finished,
                            const struct metric_desc *descs, struct snapshot *out);
