#pragma once

#include <stdbool.h>

#include "exporter/metrics/labels.h"
#include "exporter/metrics/metric.h"
#include "exporter/metrics/snapshot.h"
#include "placement/control/loop.h"

/* The label sets of one loop, which its samples borrow. */
struct control_labels {
    struct labels *loop;
    struct labels *reasons[N_CONTROL_REASONS];
};

/* False when memory is out. */
bool control_labels_init(struct control_labels *labels, const char *name);
void control_labels_finish(struct control_labels *labels);

/* Adds what a loop shows. */
void control_metrics_add(struct snapshot *out, const struct control_labels *labels,
                         const struct control_rule *rule, const struct control_status *status);

/* Adds what is common to all. */
void control_metrics_add_paused(struct snapshot *out, bool is_paused);
