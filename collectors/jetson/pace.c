#include "collectors/jetson/pace.h"

#include <math.h>

#include "exporter/core/clock.h"
#include "exporter/core/scan.h"

enum { PACE_IDLE_MS = 1000 };

/* A rail that rises by so much is more than noise of its sensor. */
static const double rise_factor = 1.25;
static const double rise_watts = 0.25;

void jetson_pace_init(struct jetson_pace *pace, double autosuspend_ms) {
    *pace = (struct jetson_pace){.idle_watts = NAN};
    if (autosuspend_ms >= 0) {
        double interval_ms = fmin(fmax(2 * autosuspend_ms, 1000), 60000);
        pace->idle_interval_ns = (int64_t)(interval_ms * (double)CLOCK_NS_PER_MS);
    }
}

bool jetson_pace_idle(const struct jetson_pace *pace, int64_t now_ns) {
    return pace->idle_interval_ns > 0 && pace->zero &&
           now_ns - pace->zero_since_ns >= PACE_IDLE_MS * CLOCK_NS_PER_MS;
}

/* The rail may feed others, too: it may not cause so many readings that the GPU never gets its
 * chance to power down. */
static bool rail_has_risen(struct jetson_pace *pace, int64_t now_ns, double watts) {
    if (isnan(pace->idle_watts) || watts < pace->idle_watts) {
        pace->idle_watts = watts;
    }
    bool risen = watts > pace->idle_watts * rise_factor + rise_watts &&
                 now_ns - pace->rail_ns >= pace->idle_interval_ns;
    pace->rail_ns = risen ? now_ns : pace->rail_ns;
    return risen;
}

bool jetson_pace_due(struct jetson_pace *pace, int64_t now_ns, enum jetson_power power,
                     double watts) {
    if (!jetson_pace_idle(pace, now_ns)) {
        return true;
    }
    if (power == JETSON_POWER_SUSPENDED) {
        pace->suspended = true;
        pace->idle_watts = watts;
        return false;
    }
    if (power == JETSON_POWER_ACTIVE && pace->suspended) {
        return true;
    }
    return rail_has_risen(pace, now_ns, watts) || now_ns - pace->read_ns >= pace->idle_interval_ns;
}

void jetson_pace_note(struct jetson_pace *pace, int64_t now_ns, double load, double watts) {
    if (load > 0) {
        pace->zero = false;
    } else if (!pace->zero) {
        pace->zero = true;
        pace->zero_since_ns = now_ns;
    }
    pace->read_ns = now_ns;
    pace->suspended = false;
    pace->idle_watts = watts;
}

enum jetson_power jetson_power_parse(const char *text) {
    struct scan_word word;
    if (!scan_word(&text, &word)) {
        return JETSON_POWER_UNKNOWN;
    }
    if (scan_word_equal(word, "suspended")) {
        return JETSON_POWER_SUSPENDED;
    }
    bool active = scan_word_equal(word, "active") || scan_word_equal(word, "resuming");
    return active ? JETSON_POWER_ACTIVE : JETSON_POWER_UNKNOWN;
}
