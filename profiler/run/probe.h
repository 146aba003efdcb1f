#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectors/collector.h"
#include "exporter/loop/loop.h"
#include "exporter/settings/config.h"
#include "profiler/run/live.h"
#include "profiler/run/record.h"

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
