#include "collectors/source/follow.h"

#include <math.h>

#include "exporter/core/clock.h"
#include "exporter/settings/settings.h"

void follow_init(struct follow *follow, int64_t peak_window_ns) {
    *follow = (struct follow){.latest = NAN};
    peak_init(&follow->peak, peak_window_ns);
}

int64_t follow_max_gap_ns(const struct settings *settings) {
    int64_t gap_ns = 3 * CLOCK_NS_PER_SEC / settings_int(settings, "sample.hz");
    return gap_ns > CLOCK_NS_PER_SEC ? gap_ns : CLOCK_NS_PER_SEC;
}

void follow_add(struct follow *follow, int64_t at_ns, int64_t now_ns, double value,
                int64_t max_gap_ns) {
    follow->latest = value;
    if (isnan(value)) {
        integral_break(&follow->integral);
        return;
    }
    follow->seen = true;
    integral_add(&follow->integral, at_ns, value, max_gap_ns);
    peak_add(&follow->peak, now_ns, value);
}

void follow_emit(struct follow *follow, const struct follow_metrics *metrics, int64_t now_ns,
                 const struct labels *labels, struct snapshot *out) {
    double peak;
    if (metrics->latest != NULL && !isnan(follow->latest)) {
        snapshot_add(out, metrics->latest, labels, follow->latest);
    }
    if (metrics->total != NULL && follow->seen) {
        snapshot_add(out, metrics->total, labels, follow->integral.total);
    }
    if (metrics->peak != NULL && peak_get(&follow->peak, now_ns, &peak)) {
        snapshot_add(out, metrics->peak, labels, peak);
    }
}
