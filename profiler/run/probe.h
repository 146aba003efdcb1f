#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/collector.h"
#include "exporter/loop/loop.h"
#include "exporter/settings/config.h"
#include "profiler/run/app.h"
#include "profiler/run/progress.h"
#include "profiler/run/record.h"
#include "profiler/run/spec.h"

/* The daemon's collectors as probes of a run. Each has its own thread, as in the daemon, so a
 * driver that hangs costs only its own values. */
struct run_probe;

/* Opens the collectors of the machine that the settings enable. Destroy it in any case. */
int run_probe_create(struct loop *loop, struct config *config,
                     const struct collector *const *collectors, int64_t interval_ms,
                     struct run_probe **ret_probe, struct error *err);

/* Starts the collectors that are due and not busy; `all`: all but the slow ones. */
void run_probe_start(struct run_probe *probe, bool all, int64_t now_ns);

/* Whether a collector is still running. */
bool run_probe_is_busy(const struct run_probe *probe);

/* Takes what the probes have read last as the state before the start of an application. */
void run_probe_mark(struct run_probe *probe);

/* Adds the values since the last call to a sample, of the groups in `metrics`. `app`: what runs, or
 * NULL. */
void run_probe_write(struct run_probe *probe, int64_t metrics, struct run_app *app,
                     struct run_record *record, struct run_live *live);

/* Adds "board", "power_mode" and "gpu" to the environment of the record. */
void run_probe_describe(struct run_probe *probe, struct run_record *record);

/* False if a collector hangs: then the process must end by _exit. Accepts NULL. */
bool run_probe_destroy(struct run_probe *probe);

/* From the metrics of the daemon's collectors to the keys of the record. */

/* How the samples of one metric become values. */
enum run_probe_use {
    RUN_PROBE_EACH, /* one value per sample, with the label `label` if there is one */
    RUN_PROBE_SUM,  /* one value: their sum */
    RUN_PROBE_MAX,  /* one value: the largest */
    RUN_PROBE_OWN,  /* one value: the sum of those of the application's processes, label `pid` */
    RUN_PROBE_NEW,  /* one value: the growth of their sum since run_probe_mark */
};

struct run_probe_row {
    const char *metric;
    const char *key;
    const char *label;    /* of the metric, kept in the key; NULL: none */
    const char *as_label; /* its name in the record; NULL: the same */
    const char *unless;   /* a better metric for the same key; NULL: none */
    const char *only;     /* only samples whose label contains this; NULL: all */
    enum run_probe_use use;
    enum record_type type;
    enum run_metrics group;
    const char *unit;
    const char *help;
};

extern const struct run_probe_row run_probe_rows[];
extern const size_t run_probe_n_rows;

/* Appends "key" or "key{label=\"value\"}", for the value of the row's label ("": none). The first
 * GPU has no label: most machines have one. */
void run_probe_key(const struct run_probe_row *row, const char *value, struct buf *out);
