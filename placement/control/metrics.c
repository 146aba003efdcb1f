#include "placement/control/metrics.h"

#include "exporter/core/cleanup.h"

#define GAUGE(variable, name_, help_)                                                              \
    static const struct metric_desc variable = {                                                   \
        .name = name_, .help = help_, .type = METRIC_GAUGE, .labels = "loop"}

static const struct metric_desc actions = {
    .name = "waap_control_actions_total",
    .help = "Times the loop turned its knob, by reason: above, below, safe.",
    .type = METRIC_COUNTER,
    .labels = "loop, reason",
};
GAUGE(
    error, "waap_control_error",
    "How far the measure is from its target, signed; 0 inside the band, absent without a measure.");
GAUGE(failures, "waap_control_failures", "Rounds in a row without a measure.");
GAUGE(hold_now, "waap_control_hold",
      "1 while the loop does nothing although its measure is missing or off target.");
static const struct metric_desc holds = {
    .name = "waap_control_holds_total",
    .help = "Rounds in which the loop left its knob alone, by reason.",
    .type = METRIC_COUNTER,
    .labels = "loop, reason",
};
GAUGE(knob, "waap_control_knob",
      "Where the knob is: its value, or from 0 the place of its value among the levels.");
static const struct metric_desc last_run = {
    .name = "waap_control_last_run_timestamp_seconds",
    .help = "When the loop last ran, in seconds since 1970.",
    .type = METRIC_GAUGE,
    .unit = "seconds",
    .labels = "loop",
};
GAUGE(measure, "waap_control_measure", "What the loop's query answered; absent without an answer.");
GAUGE(oscillating, "waap_control_oscillating",
      "1 while the dead band is widened because the loop went back and forth.");
static const struct metric_desc paused = {
    .name = "waap_control_paused",
    .help = "1 while all loops are told to leave their knobs alone.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc run_duration = {
    .name = "waap_control_run_duration_seconds",
    .help = "How long the last round took.",
    .type = METRIC_GAUGE,
    .unit = "seconds",
    .labels = "loop",
};
GAUGE(safe, "waap_control_safe", "1 while the loop stays at its safe value for want of a measure.");
GAUGE(saturated, "waap_control_saturated",
      "1 while the knob is at a bound and the measure wants it further.");
GAUGE(target_high, "waap_control_target_high", "Upper end of where the measure is to be.");
GAUGE(target_low, "waap_control_target_low", "Lower end of where the measure is to be.");
static const struct metric_desc unconfirmed = {
    .name = "waap_control_unconfirmed_total",
    .help = "Values that the plugin did not confirm in time.",
    .type = METRIC_COUNTER,
    .labels = "loop",
};

bool control_labels_init(struct control_labels *labels, const char *name) {
    *labels = (struct control_labels){.loop = labels_render("loop", name)};
    bool complete = labels->loop != NULL;
    for (size_t i = 0; i < N_CONTROL_REASONS; i++) {
        const char *reason = control_reason_name((enum control_reason)i);
        labels->reasons[i] = labels_render("loop", name, "reason", reason);
        complete = complete && labels->reasons[i] != NULL;
    }
    return complete;
}

void control_labels_finish(struct control_labels *labels) {
    labels_destroy(labels->loop);
    for (size_t i = 0; i < N_CONTROL_REASONS; i++) {
        labels_destroy(labels->reasons[i]);
    }
}

static void add_counts(struct snapshot *out, const struct control_labels *labels,
                       const struct control_status *status) {
    for (size_t i = 0; i < N_CONTROL_REASONS; i++) {
        bool is_action = control_reason_is_action((enum control_reason)i);
        snapshot_add(out, is_action ? &actions : &holds, labels->reasons[i],
                     (double)status->actions[i]);
    }
}

void control_metrics_add(struct snapshot *out, const struct control_labels *labels,
                         const struct control_rule *rule, const struct control_status *status) {
    const struct labels *loop = labels->loop;
    enum control_reason reason = status->last.reason;
    add_counts(out, labels, status);
    snapshot_add(out, &target_low, loop, rule->low);
    snapshot_add(out, &target_high, loop, rule->high);
    snapshot_add(out, &unconfirmed, loop, (double)status->unconfirmed);
    if (!status->has_run) {
        return;
    }
    if (status->last.has_error) {
        snapshot_add(out, &error, loop, status->last.error);
    }
    if (status->has_measure) {
        snapshot_add(out, &measure, loop, status->measure);
    }
    if (status->has_position) {
        snapshot_add(out, &knob, loop, status->position);
    }
    snapshot_add(out, &failures, loop, status->failures);
    snapshot_add(out, &hold_now, loop,
                 !control_reason_is_action(reason) && reason != CONTROL_IN_BAND);
    snapshot_add(out, &last_run, loop, status->run_at);
    snapshot_add(out, &oscillating, loop, status->oscillates);
    snapshot_add(out, &run_duration, loop, status->run_seconds);
    snapshot_add(out, &safe, loop, status->is_safe);
    snapshot_add(out, &saturated, loop, status->last.is_saturated);
}

void control_metrics_add_paused(struct snapshot *out, bool is_paused) {
    snapshot_add(out, &paused, NULL, is_paused);
}
