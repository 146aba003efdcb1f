#pragma once

#include <stddef.h>

#include "profiler/run/record.h"
#include "profiler/run/spec.h"

/* From the metrics of the daemon's collectors to the keys of the record. */

/* How the samples of one metric become values. */
enum run_probe_use {
    RUN_PROBE_EACH, /* one value per sample, with the label `label` if there is one */
    RUN_PROBE_SUM,  /* one value: their sum */
    RUN_PROBE_MAX,  /* one value: the largest */
};

struct run_probe_row {
    const char *metric;
    const char *key;
    const char *label;    /* of the metric, that stays; NULL: none */
    const char *as_label; /* what it is called in the record; NULL: the same */
    const char *unless;   /* a metric that tells the same better; NULL: none */
    const char *only;     /* part of the label's value that counts; NULL: all */
    enum run_probe_use use;
    enum run_type type;
    enum run_metrics group;
    const char *unit;
    const char *help;
};

extern const struct run_probe_row run_probe_rows[];
extern const size_t run_probe_n_rows;

/* The value of a label in the text of a sample, `a="x",b="y"`, as it stands there, still escaped;
 * NULL: there is none. */
const char *run_probe_label(const char *labels, size_t len, const char *name, size_t *ret_len);

/* Appends "key" or "key{label=\"value\"}". The first GPU has no label: most machines have one. */
void run_probe_key(const struct run_probe_row *row, const char *labels, size_t len,
                   struct buf *out);
