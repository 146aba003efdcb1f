#pragma once

#include "exporter/engine/engine.h"

/* One running collector as the engine sees it: its worker and how it has done. */
struct engine_slot {
    struct engine *engine;
    size_t index;
    struct engine_worker *worker;
    struct config *config;
    bool running;
    bool late; /* missed a deadline and has not returned since */
    bool asked;
    bool failing; /* the fault was logged, its end was not */
    int64_t started_ns;
    struct error error; /* of the latest answer; "" if good */
    double duration_seconds;
    double last_success_seconds;
    uint64_t duplicates;
    struct engine_slot *next; /* among the retired */
};

/* Starts a worker for the collector; `finished` gets the slot as its context. `shared` is what
 * collectors find in their environment besides paths and settings. */
int engine_slot_create(const struct collector *collector, struct config *config,
                       struct collector_env shared, struct loop *loop,
                       void (*finished)(struct engine_worker *, void *),
                       struct engine_slot **ret_slot, struct error *err);

/* Frees the slot once its thread has ended, waiting up to `timeout_ms`; false while it has not. */
bool engine_slot_destroy(struct engine_slot *slot, int64_t timeout_ms);

void engine_slot_start(struct engine_slot *slot);

/* Takes over the worker's result; logs where a fault begins or ends. */
void engine_slot_note_result(struct engine_slot *slot, const struct engine_result *result);

/* Notes that a scrape did not wait any longer. */
void engine_slot_note_late(struct engine_slot *slot);
