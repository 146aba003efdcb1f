#include "exporter/engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "collectors/source/energy.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/list.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/settings/settings.h"

/* A round older than this is not joined: its first results would be stale. */
#define ROUND_SHARED_NS CLOCK_NS_PER_SEC

#define REAP_INTERVAL_NS CLOCK_NS_PER_SEC

/* If a scrape waited less than this, it goes without the collector, but other scrapes still wait
 * for it. */
#define LATE_MIN_NS (200 * CLOCK_NS_PER_MS)

/* One running collector: its worker and its record. */
struct slot {
    struct engine *engine;
    size_t index;
    struct engine_worker *worker;
    struct config *config;
    bool running;
    bool late;    /* missed a deadline and has not returned since */
    bool failing; /* a failure was logged, and no recovery since */
    int64_t started_ns;
    struct error error;          /* of the latest result; "" if good */
    struct engine_status status; /* without what engine_status computes */
    struct slot *next;           /* among the retired */
};

struct engine {
    struct loop *loop;
    const struct collector *const *collectors;
    size_t n_collectors;
    struct energy *energy;                     /* shared by the collectors */
    struct slot *slots[ENGINE_MAX_COLLECTORS]; /* NULL: switched off */
    struct slot *retired;                      /* replaced; their threads have not ended */
    struct engine_scrape *waiting;
    struct engine_entry entries[ENGINE_MAX_COLLECTORS];
    uint64_t generation;
    int64_t joinable_until_ns; /* of the round */
    uint64_t done;             /* collectors with a result in the round */
    struct push_store *push_store;
    const struct nvml_library *nvml;
    struct loop_timer deadline;
    struct loop_timer reap;
};

static uint64_t bit(size_t index) {
    return UINT64_C(1) << index;
}

/* ---- slots ---- */

static struct collector_env make_env(const struct engine *engine, const struct settings *settings) {
    return (struct collector_env){
        .procfs = settings_string(settings, "path.procfs"),
        .sysfs = settings_string(settings, "path.sysfs"),
        .cgroupfs = settings_string(settings, "path.cgroupfs"),
        .rootfs = settings_string(settings, "path.rootfs"),
        .settings = settings,
        .energy = engine->energy,
        .nvml = engine->nvml,
        .push_store = engine->push_store,
    };
}

static void slot_finished(struct engine_worker *worker, void *context);

static int slot_create(struct engine *engine, size_t index, struct config *config,
                       struct slot **ret_slot, struct error *err) {
    struct slot *slot = mem_zalloc(1, sizeof(*slot));
    slot->engine = engine;
    slot->index = index;
    slot->config = config_ref(config);
    const struct settings *settings = config->settings;
    struct engine_worker_config worker_config = {
        .collector = engine->collectors[index],
        .env = make_env(engine, settings),
        .sample_interval_ns = CLOCK_NS_PER_SEC / settings_int(settings, "sample.hz"),
        .reprobe_interval_ns =
            settings_duration_ms(settings, "collector.reprobe-interval") * CLOCK_NS_PER_MS,
        .loop = engine->loop,
        .finished = slot_finished,
        .context = slot,
    };
    int r = engine_worker_create(&worker_config, &slot->worker, err);
    if (r < 0) {
        config_unref(slot->config);
        free(slot);
        return r;
    }
    *ret_slot = slot;
    return 0;
}

/* Frees the slot once its thread has ended, waiting up to `timeout_ms`; false: it has not. */
static bool slot_destroy(struct slot *slot, int64_t timeout_ms) {
    if (!engine_worker_destroy(slot->worker, timeout_ms)) {
        return false;
    }
    config_unref(slot->config);
    free(slot);
    return true;
}

static void slot_start(struct slot *slot) {
    slot->running = true;
    slot->started_ns = clock_monotonic_ns();
    engine_worker_start(slot->worker);
}

static const char *slot_name(const struct slot *slot) {
    return slot->engine->collectors[slot->index]->name;
}

/* Takes over the worker's result; logs when a failure begins and when it ends. */
static void slot_note_result(struct slot *slot, const struct engine_result *result) {
    const char *name = slot_name(slot);
    slot->status.asked = true;
    slot->status.duration_seconds = result->duration_seconds;
    slot->status.duplicates += result->duplicates;
    if (slot->late) {
        log_info("%s: responds again, after %.1f s", name,
                 (double)(clock_monotonic_ns() - slot->started_ns) / 1e9);
        slot->late = false;
    }
    slot->error = result->error;
    if (result->code == -ENODEV) {
        slot->failing = false;
        return; /* the worker logs it */
    }
    if (result->code < 0) {
        if (!slot->failing) {
            log_warn("%s: %s", name, result->error.text);
        }
        slot->failing = true;
        return;
    }
    slot->error.text[0] = '\0';
    slot->status.last_success_seconds = result->finished_wall_seconds;
    if (slot->failing) {
        log_info("%s: works again", name);
        slot->failing = false;
    }
}

/* A scrape did not wait any longer. */
static void slot_note_late(struct slot *slot) {
    int64_t waited_ns = clock_monotonic_ns() - slot->started_ns;
    slot->status.asked = true;
    if (slot->late || waited_ns < LATE_MIN_NS) {
        return;
    }
    slot->late = true;
    double waited = (double)waited_ns / 1e9;
    error_set(&slot->error, -ETIMEDOUT, "no response within %.1f s", waited);
    log_warn("%s: %s; scrapes go on without it", slot_name(slot), slot->error.text);
}

/* ---- rounds ---- */

/* Scrapes that were waiting already keep their results until newer ones replace them: however many
 * wait for a collector that hangs, there is one set of results. */
static void begin_round(struct engine *engine, int64_t now_ns) {
    engine->joinable_until_ns = now_ns + ROUND_SHARED_NS;
    engine->done = 0;
    engine->generation++;
}

static void clear_entry(struct engine_entry *entry) {
    exposition_part_unref(entry->part);
    *entry = (struct engine_entry){0};
}

static void end_round_if_idle(struct engine *engine) {
    if (engine->waiting != NULL) {
        return;
    }
    engine->joinable_until_ns = 0;
    for (size_t i = 0; i < engine->n_collectors; i++) {
        clear_entry(&engine->entries[i]);
    }
}

static void take_result(struct engine *engine, size_t index, const struct engine_result *result) {
    clear_entry(&engine->entries[index]);
    engine->entries[index] = (struct engine_entry){
        .answered = true,
        .code = result->code,
        .duration_seconds = result->duration_seconds,
        .part = result->part != NULL ? exposition_part_ref(result->part) : NULL,
    };
    engine->done |= bit(index);
    engine->generation++;
}

/* ---- scrapes ---- */

static void arm_deadline(struct engine *engine) {
    int64_t first_ns = LOOP_NEVER;
    for (const struct engine_scrape *s = engine->waiting; s != NULL; s = s->next) {
        first_ns = s->deadline_ns < first_ns ? s->deadline_ns : first_ns;
    }
    engine->deadline.due_ns = first_ns;
}

/* Finishes scrapes that have all results or no time left. */
static void finish_scrapes(struct engine *engine, int64_t now_ns) {
    struct engine_scrape *finished = NULL;
    for (struct engine_scrape **link = &engine->waiting; *link != NULL;) {
        struct engine_scrape *scrape = *link;
        if (scrape->awaited != 0 && scrape->deadline_ns > now_ns) {
            link = &scrape->next;
            continue;
        }
        for (size_t i = 0; i < engine->n_collectors; i++) {
            if ((scrape->awaited & bit(i)) != 0 && engine->slots[i] != NULL) {
                slot_note_late(engine->slots[i]);
            }
        }
        scrape->missed |= scrape->awaited;
        scrape->awaited = 0;
        *link = scrape->next;
        scrape->next = finished;
        finished = scrape;
    }
    arm_deadline(engine);
    while (finished != NULL) {
        struct engine_scrape *scrape = finished;
        finished = scrape->next;
        scrape->finished(scrape);
    }
    end_round_if_idle(engine);
}

static void deadline_fire(struct loop_timer *timer) {
    struct engine *engine = CONTAINER_OF(timer, struct engine, deadline);
    finish_scrapes(engine, clock_monotonic_ns());
}

bool engine_scrape(struct engine *engine, struct engine_scrape *scrape) {
    int64_t now_ns = clock_monotonic_ns();
    if (now_ns >= engine->joinable_until_ns) {
        begin_round(engine, now_ns);
    }
    scrape->missed = 0;
    scrape->awaited = 0;
    for (size_t i = 0; i < engine->n_collectors; i++) {
        if ((scrape->want & bit(i)) == 0 || (engine->done & bit(i)) != 0) {
            continue;
        }
        struct slot *slot = engine->slots[i];
        if (slot == NULL || slot->late) {
            scrape->missed |= bit(i);
            continue;
        }
        if (!slot->running) { /* otherwise its result counts for this round as well */
            slot_start(slot);
        }
        scrape->awaited |= bit(i);
    }
    if (scrape->awaited == 0) {
        return true;
    }
    scrape->next = engine->waiting;
    engine->waiting = scrape;
    arm_deadline(engine);
    return false;
}

void engine_scrape_cancel(struct engine *engine, struct engine_scrape *scrape) {
    *LIST_LINK(&engine->waiting, scrape, next) = scrape->next;
    arm_deadline(engine);
    end_round_if_idle(engine);
}

static void slot_finished(struct engine_worker *worker, void *context) {
    struct slot *slot = context;
    struct engine *engine = slot->engine;
    const struct engine_result *result = engine_worker_result(worker);
    slot->running = false;
    if (engine->slots[slot->index] != slot) {
        return; /* it was retired */
    }
    slot_note_result(slot, result);
    if (engine->waiting != NULL) {
        take_result(engine, slot->index, result);
    }
    for (struct engine_scrape *scrape = engine->waiting; scrape != NULL; scrape = scrape->next) {
        scrape->awaited &= ~bit(slot->index);
    }
    finish_scrapes(engine, clock_monotonic_ns());
}

void engine_release(struct engine *engine) {
    finish_scrapes(engine, LOOP_NEVER);
}

/* ---- configuration ---- */

/* Frees the retired slots whose threads end by that time. */
static void reap(struct engine *engine, bool running_too, int64_t until_ns) {
    for (struct slot **link = &engine->retired; *link != NULL;) {
        struct slot *slot = *link;
        struct slot *next = slot->next;
        int64_t left_ns = until_ns - clock_monotonic_ns();
        if ((running_too || !slot->running) &&
            slot_destroy(slot, left_ns > 0 ? left_ns / CLOCK_NS_PER_MS : 0)) {
            *link = next;
        } else {
            link = &slot->next;
        }
    }
}

static void reap_fire(struct loop_timer *timer) {
    struct engine *engine = CONTAINER_OF(timer, struct engine, reap);
    reap(engine, false, 0); /* while one runs, its result may still be queued on the loop */
    if (engine->retired != NULL) {
        timer->due_ns = clock_monotonic_ns() + REAP_INTERVAL_NS;
    }
}

/* Ends the thread of a slot when its collector returns, whenever that is. */
static void retire_slot(struct engine *engine, struct slot *slot) {
    engine_worker_quit(slot->worker);
    slot->next = engine->retired;
    engine->retired = slot;
    engine->reap.due_ns = clock_monotonic_ns() + REAP_INTERVAL_NS;
}

static void retire(struct engine *engine, size_t index) {
    struct slot *slot = TAKE(engine->slots[index]);
    if (slot == NULL) {
        return;
    }
    retire_slot(engine, slot);
    engine->joinable_until_ns = 0; /* it has asked the slot that is gone, not its successor */
    for (struct engine_scrape *scrape = engine->waiting; scrape != NULL; scrape = scrape->next) {
        scrape->missed |= scrape->awaited & bit(index);
        scrape->awaited &= ~bit(index);
    }
    finish_scrapes(engine, clock_monotonic_ns());
}

static bool same_settings(const struct collector *collector, const struct settings *a,
                          const struct settings *b) {
    char prefix[128];
    snprintf(prefix, sizeof(prefix), "collector.%s.", collector->name);
    return settings_equal(a, b, prefix) && settings_equal(a, b, "path.") &&
           settings_equal(a, b, "sample.") && settings_equal(a, b, "collector.jetson.compat") &&
           settings_equal(a, b, "collector.reprobe-interval");
}

static bool is_enabled(const struct collector *collector, const struct settings *settings) {
    char name[128];
    snprintf(name, sizeof(name), "collector.%s", collector->name);
    return settings_bool(settings, name);
}

/* Starts a slot if the configuration needs a new one; NULL: it does not. */
static int start_changed(struct engine *engine, size_t index, struct config *config,
                         struct slot **ret_slot, struct error *err) {
    const struct collector *collector = engine->collectors[index];
    const struct slot *old = engine->slots[index];
    if (!is_enabled(collector, config->settings) ||
        (old != NULL && same_settings(collector, old->config->settings, config->settings))) {
        return 0;
    }
    struct slot *slot;
    int r = slot_create(engine, index, config, &slot, err);
    if (r < 0) {
        return r;
    }
    if (old != NULL) {
        slot->status.last_success_seconds = old->status.last_success_seconds;
        slot->status.duplicates = old->status.duplicates;
    }
    *ret_slot = slot;
    return 0;
}

int engine_configure(struct engine *engine, struct config *config, struct error *err) {
    struct slot *started[ENGINE_MAX_COLLECTORS] = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < engine->n_collectors; i++) {
        r = start_changed(engine, i, config, &started[i], err);
    }
    for (size_t i = 0; i < engine->n_collectors; i++) {
        if (r < 0 && started[i] != NULL) {
            retire_slot(engine, started[i]);
        } else if (r == 0 &&
                   (started[i] != NULL || !is_enabled(engine->collectors[i], config->settings))) {
            retire(engine, i);
            engine->slots[i] = started[i];
        }
    }
    return r;
}

/* Prometheus rejects a whole page for one bad name, so names are checked before the first scrape.
 */
static int check_metrics(const struct collector *collector, struct error *err) {
    const struct metric_desc *desc;
    int r = 0;
    for (size_t i = 0; r == 0 && (desc = collector_metric(collector, i)) != NULL; i++) {
        r = metric_desc_check(desc, err);
    }
    return r;
}

int engine_create(struct loop *loop, const struct collector *const *collectors,
                  struct engine **ret_engine, struct error *err) {
    for (size_t i = 0; collectors[i] != NULL; i++) {
        int r = check_metrics(collectors[i], err);
        if (r < 0) {
            return r;
        }
    }
    struct engine *engine = mem_zalloc(1, sizeof(*engine));
    engine->energy = energy_create();
    engine->loop = loop;
    engine->collectors = collectors;
    while (collectors[engine->n_collectors] != NULL &&
           engine->n_collectors < ENGINE_MAX_COLLECTORS) {
        engine->n_collectors++;
    }
    engine->deadline = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = deadline_fire};
    engine->reap = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = reap_fire};
    loop_timer_add(loop, &engine->deadline);
    loop_timer_add(loop, &engine->reap);
    *ret_engine = engine;
    return 0;
}

void engine_set_push_store(struct engine *engine, struct push_store *store) {
    engine->push_store = store;
}

void engine_set_nvml(struct engine *engine, const struct nvml_library *library) {
    engine->nvml = library;
}

bool engine_destroy(struct engine *engine, int64_t timeout_ms) {
    int64_t until_ns = clock_monotonic_ns() + timeout_ms * CLOCK_NS_PER_MS;
    for (size_t i = 0; i < engine->n_collectors; i++) {
        retire(engine, i);
    }
    loop_timer_remove(engine->loop, &engine->deadline);
    loop_timer_remove(engine->loop, &engine->reap);
    reap(engine, true, until_ns);
    if (engine->retired != NULL) {
        return false;
    }
    energy_destroy(engine->energy);
    free(engine);
    return true;
}

/* ---- status ---- */

uint64_t engine_enabled(const struct engine *engine) {
    uint64_t enabled = 0;
    for (size_t i = 0; i < engine->n_collectors; i++) {
        enabled |= engine->slots[i] != NULL ? bit(i) : 0;
    }
    return enabled;
}

size_t engine_n_collectors(const struct engine *engine) {
    return engine->n_collectors;
}

struct engine_status engine_status(const struct engine *engine, size_t index) {
    const struct slot *slot = engine->slots[index];
    struct engine_status status = {.error = ""};
    if (slot != NULL) {
        status = slot->status;
        status.enabled = true;
        status.state = engine_worker_state(slot->worker);
        status.healthy = status.asked && !slot->late && slot->error.text[0] == '\0';
        status.error = slot->error.text;
    }
    status.collector = engine->collectors[index];
    return status;
}

const struct engine_entry *engine_entry(const struct engine *engine, size_t index) {
    return &engine->entries[index];
}

uint64_t engine_generation(const struct engine *engine) {
    return engine->generation;
}

void engine_add_duplicates(struct engine *engine, size_t index, uint64_t n) {
    if (engine->slots[index] != NULL) {
        engine->slots[index]->status.duplicates += n;
    }
}
