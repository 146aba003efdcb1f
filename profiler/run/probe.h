#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/collector.h"
#include "exporter/loop/loop.h"
#include "exporter/settings/config.h"
#include "profiler/run/progress.h"
#include "profiler/run/record.h"
#include "profiler/run/spec.h"

/* The daemon's own collectors as the probes of a run: each on its thread, as the daemon runs it, so
 * that a driver that hangs costs its values and nothing else. */
struct run_probe;

/* Opens those of `collectors` that tell of the machine and that the settings have switched on. */
int run_probe_create(struct loop *loop, struct config *config,
                     const struct collector *const *collectors, int64_t interval_ms,
                     struct run_probe **ret_probe, struct error *err);

/* Asks those whose turn it is and who have answered before; `all`: also those who were asked a
 * moment ago, but for the slow ones. */
void run_probe_start(struct run_probe *probe, bool all, int64_t now_ns);

/* Whether one has not answered yet. */
bool run_probe_is_busy(const struct run_probe *probe);

/* Adds what came since the last call to a sample, of the groups in `metrics`. */
void run_probe_write(struct run_probe *probe, int64_t metrics, struct run_record *record,
                     struct run_live *live);

/* Adds what the collectors say of the machine itself to the environment of the record: "gpu",
 * "board" and "power_mode". */
void run_probe_describe(struct run_probe *probe, struct run_record *record);

/* False where a collector hangs: it is left behind, and the process should leave by _exit. Accepts
 * NULL. */
bool run_probe_destroy(struct run_probe *probe);

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
