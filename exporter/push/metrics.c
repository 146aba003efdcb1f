#include "exporter/push/metrics.h"

const struct metric_desc push_failure_time = {
    .name = "push_failure_time_seconds",
    .help = "When a push of this group was last refused, in seconds since 1970; 0: never.",
    .type = METRIC_GAUGE,
    .unit = "seconds",
    .labels = "job, instance, …",
};
const struct metric_desc push_time = {
    .name = "push_time_seconds",
    .help = "When this group was last pushed, in seconds since 1970; 0: never.",
    .type = METRIC_GAUGE,
    .unit = "seconds",
    .labels = "job, instance, …",
};

static const struct metric_desc expired = {
    .name = "waap_push_expired_series_total",
    .help = "Pushed series that vanished at the end of their time to live.",
    .type = METRIC_COUNTER,
};
static const struct metric_desc owners = {
    .name = "waap_push_owners",
    .help = "Plugins and groups that series were pushed by.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc persistent = {
    .name = "waap_push_persistent",
    .help = "Whether pushed series survive a restart of waap (1) or not (0), see --push.table.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc refused = {
    .name = "waap_push_refused_total",
    .help = "Pushes that were refused, by reason.",
    .type = METRIC_COUNTER,
    .labels = "reason",
};
static const struct metric_desc saved = {
    .name = "waap_push_state_saved_timestamp_seconds",
    .help = "When the state file was last written, in seconds since 1970.",
    .type = METRIC_GAUGE,
    .unit = "seconds",
};
static const struct metric_desc series = {
    .name = "waap_push_series",
    .help = "Series that were pushed and are shown.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc table_bytes = {
    .name = "waap_push_table_bytes",
    .help = "Size of all entries in the table of pushed series.",
    .type = METRIC_GAUGE,
    .unit = "bytes",
};
static const struct metric_desc updates = {
    .name = "waap_push_updates_total",
    .help = "Updates of pushed series that were applied.",
    .type = METRIC_COUNTER,
};

const struct metric_desc *const push_metrics_all[] = {
    &expired, &owners, &persistent, &refused, &saved, &series, &table_bytes, &updates, NULL,
};

void push_metrics_finish(struct push_metrics *metrics) {
    for (size_t i = 0; i < PUSH_REASONS; i++) {
        labels_destroy(metrics->reasons[i]);
    }
    *metrics = (struct push_metrics){0};
}

void push_metrics_collect(struct push_metrics *metrics, const struct push_stats *stats,
                          double saved_seconds, struct snapshot *out) {
    snapshot_add(out, &expired, NULL, (double)stats->expired);
    snapshot_add(out, &owners, NULL, (double)stats->n_owners);
    snapshot_add(out, &persistent, NULL, stats->in_file ? 1 : 0);
    snapshot_add(out, &series, NULL, (double)stats->n_series);
    snapshot_add(out, &table_bytes, NULL, (double)stats->table_bytes);
    snapshot_add(out, &updates, NULL, (double)stats->updates);
    if (saved_seconds > 0) {
        snapshot_add(out, &saved, NULL, saved_seconds);
    }
    for (size_t i = 0; i < PUSH_REASONS; i++) {
        struct labels **labels = &metrics->reasons[i];
        if (*labels == NULL) {
            *labels = labels_render("reason", stats->refused[i].reason);
        }
        snapshot_add(out, &refused, *labels, (double)stats->refused[i].n);
    }
}
