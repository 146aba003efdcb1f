#include "exporter/engine/slot.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/core/clock.h"
#include "exporter/core/log.h"

/* A scraper in a greater hurry than this goes without the collector, but does not take it from the
 * others. */
#define LATE_MIN_NS (200 * CLOCK_NS_PER_MS)

static struct collector_env make_env(const struct settings *settings, struct collector_env shared) {
    return (struct collector_env){
        .procfs = settings_string(settings, "path.procfs"),
        .sysfs = settings_string(settings, "path.sysfs"),
        .cgroupfs = settings_string(settings, "path.cgroupfs"),
        .rootfs = settings_string(settings, "path.rootfs"),
        .settings = settings,
        .energy = shared.energy,
        .nvml = shared.nvml,
        .push_store = shared.push_store,
    };
}

int engine_slot_create(const struct collector *collector, struct config *config,
                       struct collector_env shared, struct loop *loop,
                       void (*finished)(struct engine_worker *, void *),
                       struct engine_slot **ret_slot, struct error *err) {
    struct engine_slot *slot = calloc(1, sizeof(*slot));
    if (slot == NULL) {
        return error_set(err, -ENOMEM, "%s: out of memory", collector->name);
    }
    slot->config = config_ref(config);
    const struct settings *settings = config->settings;
    struct engine_worker_config worker_config = {
        .collector = collector,
        .env = make_env(settings, shared),
        .sample_interval_ns = CLOCK_NS_PER_SEC / settings_int(settings, "sample.hz"),
        .reprobe_interval_ns =
            settings_duration_ms(settings, "collector.reprobe-interval") * CLOCK_NS_PER_MS,
        .loop = loop,
        .finished = finished,
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

bool engine_slot_destroy(struct engine_slot *slot, int64_t timeout_ms) {
    if (!engine_worker_destroy(slot->worker, timeout_ms)) {
        return false;
    }
    config_unref(slot->config);
    free(slot);
    return true;
}

void engine_slot_start(struct engine_slot *slot) {
    slot->running = true;
    slot->started_ns = clock_monotonic_ns();
    engine_worker_start(slot->worker);
}

static const char *slot_name(const struct engine_slot *slot) {
    return engine_status(slot->engine, slot->index).collector->name;
}

void engine_slot_note_result(struct engine_slot *slot, const struct engine_result *result) {
    const char *name = slot_name(slot);
    slot->running = false;
    slot->asked = true;
    slot->duration_seconds = result->duration_seconds;
    slot->duplicates += result->duplicates;
    if (slot->late) {
        log_info("%s: answers again, after %.1f s", name,
                 (double)(clock_monotonic_ns() - slot->started_ns) / 1e9);
        slot->late = false;
    }
    slot->error = result->error;
    if (result->code == -ENODEV) {
        slot->failing = false;
        return; /* the worker logs what is absent */
    }
    if (result->code < 0) {
        if (!slot->failing) {
            log_warn("%s: %s", name, result->error.text);
        }
        slot->failing = true;
        return;
    }
    slot->error.text[0] = '\0';
    slot->last_success_seconds = result->finished_wall_seconds;
    if (slot->failing) {
        log_info("%s: works again", name);
        slot->failing = false;
    }
}

void engine_slot_note_late(struct engine_slot *slot) {
    int64_t waited_ns = clock_monotonic_ns() - slot->started_ns;
    slot->asked = true;
    if (slot->late || waited_ns < LATE_MIN_NS) {
        return;
    }
    slot->late = true;
    double waited = (double)waited_ns / 1e9;
    error_set(&slot->error, -ETIMEDOUT, "no answer within %.1f s", waited);
    log_warn("%s: %s; scrapes go on without it", slot_name(slot), slot->error.text);
}
