#pragma once

#include "collectors/source/integral.h"
#include "collectors/source/peak.h"
#include "exporter/metrics/snapshot.h"

struct settings;

/* A value that is sampled: its latest, its integral and its peak. */
struct follow {
    double latest; /* NAN: could not be read */
    bool seen;     /* there has been a value */
    struct integral integral;
    struct peak peak;
};

void follow_init(struct follow *follow, int64_t peak_window_ns);

/* How far apart samples may be that are joined: three of them may be lost, and a second is never a
 * gap. */
int64_t follow_max_gap_ns(const struct settings *settings);

/* Adds a sample that was taken at `at_ns` of a clock of its own, and seen at `now_ns` of the
 * monotonic one. NAN: could not be read. */
void follow_add(struct follow *follow, int64_t at_ns, int64_t now_ns, double value,
                int64_t max_gap_ns);

/* What the value, its integral and its peak are called; NULL: not shown. */
struct follow_metrics {
    const struct metric_desc *latest;
    const struct metric_desc *total;
    const struct metric_desc *peak;
};

/* Adds what is known to a snapshot. */
void follow_emit(struct follow *follow, const struct follow_metrics *metrics, int64_t now_ns,
                 const struct labels *labels, struct snapshot *out);
