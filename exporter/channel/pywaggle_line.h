#pragma once

#include <stddef.h>

#include "exporter/core/error.h"
#include "exporter/metrics/labels.h"
#include "exporter/push/update.h"

/* A line of pywaggle's run log (data.ndjson), which a plugin writes for every publish:
 * {"meta":{"camera":"top"},"name":"env.count.car","timestamp":"…","value":3} */

enum { PYWAGGLE_MAX_LABELS = 32, PYWAGGLE_MAX_UPDATES = 2, PYWAGGLE_MAX_NAME_LEN = 128 };

/* What a line means as metrics; points into the line. Every publish counts in
 * plugin_publishes_total{name}. A number becomes the gauge env_count_car with the meta as labels;
 * what timeit("plugin.duration.inference") publishes, in nanoseconds, goes into the histogram
 * plugin_duration_seconds{name="inference"}. Texts count only. */
struct pywaggle_line {
    struct push_update updates[PYWAGGLE_MAX_UPDATES]; /* the count first */
    size_t n_updates;
    double one, value;
    char name[PYWAGGLE_MAX_NAME_LEN + 2];
    struct label publish_label;
    struct label labels[PYWAGGLE_MAX_LABELS];
};

/* Reads `len` bytes, which are overwritten. -EINVAL with what is wrong. `out` must not move. */
int pywaggle_line_read(char *text, size_t len, struct pywaggle_line *out, struct error *err);
