#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/collector.h"
#include "exporter/engine/worker.h"
#include "exporter/loop/loop.h"
#include "exporter/metrics/exposition.h"
#include "exporter/settings/config.h"

/* Runs the collectors. A scrape starts a round on some of them and finishes when all have
 * responded or at its deadline. A collector that misses its deadline is skipped until it responds.
 * Scrapes that arrive during a round share its results. Lives on the loop thread. Collectors are
 * numbered by their row in the table; sets of them are bit masks. */
struct engine;

enum { ENGINE_MAX_COLLECTORS = 64 };

/* The latest result of a collector, while a scrape waits or is being finished. */
struct engine_entry {
    bool answered;
    int code;                     /* as in struct engine_result */
    struct exposition_part *part; /* its share of the page; NULL: none */
    double duration_seconds;
};

/* One waiting scrape, embedded in its request. */
struct engine_scrape {
    uint64_t want;
    int64_t deadline_ns;
    /* Called on the loop, once, never from engine_scrape. The entries are valid until it returns.
     */
    void (*finished)(struct engine_scrape *scrape);

    uint64_t missed; /* of want: those without a result in time */
    uint64_t awaited;
    struct engine_scrape *next;
};

/* The status of a collector, for the landing page and the self metrics. */
struct engine_status {
    const struct collector *collector;
    bool enabled;
    enum engine_worker_state state;
    bool asked;        /* has responded or missed a deadline at least once */
    bool healthy;      /* its latest result was good and in time */
    const char *error; /* "" if healthy */
    double duration_seconds;
    double last_success_seconds; /* 0: never */
    uint64_t duplicates;
};

int engine_create(struct loop *loop, const struct collector *const *collectors,
                  struct engine **ret_engine, struct error *err);

/* Set the environment of collectors that engine_configure starts from now on. */
void engine_set_push_store(struct engine *engine, struct push_store *store);
void engine_set_nvml(struct engine *engine, const struct nvml_library *library);

/* Starts, keeps, restarts or ends collectors according to the settings, at start and after a
 * reload. Collectors whose settings are the same go on undisturbed; after a failure, all do. Takes
 * its own reference of the configuration. */
int engine_configure(struct engine *engine, struct config *config, struct error *err);

/* Starts or joins a round. True: all results are there already, and `finished` is not called; the
 * entries are valid until the loop turns. */
bool engine_scrape(struct engine *engine, struct engine_scrape *scrape);

/* Ends the wait of a scrape without calling `finished`. */
void engine_scrape_cancel(struct engine *engine, struct engine_scrape *scrape);

const struct engine_entry *engine_entry(const struct engine *engine, size_t index);

/* Changes with every entry and every round: pages of one generation have the same content. */
uint64_t engine_generation(const struct engine *engine);

/* The enabled collectors. */
uint64_t engine_enabled(const struct engine *engine);

size_t engine_n_collectors(const struct engine *engine);
struct engine_status engine_status(const struct engine *engine, size_t index);

/* Counts series that were dropped because another collector has them. */
void engine_add_duplicates(struct engine *engine, size_t index, uint64_t n);

/* Finishes every scrape at once, as at its deadline. */
void engine_release(struct engine *engine);

/* Stops the collectors and frees the engine; no scrape may wait, and the loop must have stopped.
 * False if a collector still hangs after `timeout_ms`: the process should call _exit, or try again.
 */
bool engine_destroy(struct engine *engine, int64_t timeout_ms);
