#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/collector.h"
#include "exporter/engine/worker.h"
#include "exporter/loop/loop.h"
#include "exporter/metrics/exposition.h"
#include "exporter/settings/config.h"

/* Runs the collectors. A scrape asks for some of them and is told when all have answered or its
 * deadline has come; a collector that misses a deadline is missing in that scrape and is not waited
 * for again until it returns. Scrapes that arrive while a round is under way share its results.
 * Lives on the loop thread. Collectors are numbered by their row in the table; sets of them are bit
 * masks. */
struct engine;

enum { ENGINE_MAX_COLLECTORS = 64 };

/* The latest answer of a collector, while a scrape waits or is being finished. */
struct engine_entry {
    bool answered;
    int code;                     /* as in struct engine_result */
    struct exposition_part *part; /* NULL: nothing */
    double duration_seconds;
};

/* One waiting scrape, embedded in its request. */
struct engine_scrape {
    uint64_t want;
    int64_t deadline_ns;
    /* Called on the loop, once, never from engine_scrape. The entries are valid until it returns.
     */
    void (*finished)(struct engine_scrape *scrape);

    uint64_t missed; /* of want: those that have no answer in time */
    uint64_t awaited;
    struct engine_scrape *next;
};

/* How a collector does: for the landing page and the self metrics. */
struct engine_status {
    const struct collector *collector;
    bool enabled;
    enum engine_worker_state state;
    bool asked;        /* has answered or missed a scrape at least once */
    bool healthy;      /* its latest answer was good and in time */
    const char *error; /* why not; "" */
    double duration_seconds;
    double last_success_seconds; /* 0: never */
    uint64_t duplicates;
};

int engine_create(struct loop *loop, const struct collector *const *collectors,
                  struct engine **ret_engine, struct error *err);

/* What the collectors find in their environment, from the next engine_configure on. */
void engine_set_push_store(struct engine *engine, struct push_store *store);
void engine_set_nvml(struct engine *engine, const struct nvml_library *library);

/* Starts, keeps, restarts or ends collectors as the settings say: at start and after a reload. What
 * they do not change goes on undisturbed; after a failure, everything. Takes its own reference of
 * the configuration. */
int engine_configure(struct engine *engine, struct config *config, struct error *err);

/* Starts or joins a round. True: everything is there already and `finished` will not be called; the
 * entries are valid until the loop turns. */
bool engine_scrape(struct engine *engine, struct engine_scrape *scrape);

/* Ends the wait of a scrape without calling `finished`. */
void engine_scrape_cancel(struct engine *engine, struct engine_scrape *scrape);

const struct engine_entry *engine_entry(const struct engine *engine, size_t index);

/* Changes with every entry and every round: pages of one generation have the same content. */
uint64_t engine_generation(const struct engine *engine);

/* All collectors that are switched on. */
uint64_t engine_enabled(const struct engine *engine);

size_t engine_n_collectors(const struct engine *engine);
struct engine_status engine_status(const struct engine *engine, size_t index);

/* Adds to what the collector lost to series of others. */
void engine_add_duplicates(struct engine *engine, size_t index, uint64_t n);

/* Ends every wait at once, as if all deadlines had come. */
void engine_release(struct engine *engine);

/* Stops the collectors and frees the engine; no scrape may wait and the loop may not turn any more.
 * Those that hang are left behind after `timeout_ms`: false is returned then, and the process
 * should leave by _exit (or try again). */
bool engine_destroy(struct engine *engine, int64_t timeout_ms);
