#include "exporter/daemon/self_metrics.h"

#include "exporter/core/memory.h"
#include "exporter/core/version.h"
#include "exporter/daemon/daemon.h"
#include "exporter/http/process_metrics.h"
#include "exporter/http/stats.h"

static const struct metric_desc build_info = {
    .name = "waap_build_info",
    .help = "Version, revision, compiler and architecture of waap; always 1.",
    .type = METRIC_INFO,
    .labels = "version, revision, compiler, arch",
};
static const struct metric_desc collector_duration = {
    .name = "waap_collector_duration_seconds",
    .help = "Duration of the collector in this scrape.",
    .type = METRIC_GAUGE,
    .unit = "seconds",
    .labels = "collector",
};
static const struct metric_desc collector_last_success = {
    .name = "waap_collector_last_success_timestamp_seconds",
    .help = "Time of the last success of the collector since unix epoch in seconds.",
    .type = METRIC_GAUGE,
    .unit = "seconds",
    .labels = "collector",
};
static const struct metric_desc collector_success = {
    .name = "waap_collector_success",
    .help = "Whether the collector succeeded in this scrape (1), or failed or was too late (0).",
    .type = METRIC_GAUGE,
    .labels = "collector",
};
static const struct metric_desc demo_running = {
    .name = "waap_demo",
    .help = "1 if the values are simulated, see --demo; absent otherwise.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc duplicate_series = {
    .name = "waap_duplicate_series_total",
    .help = "Series dropped because of an earlier one with the same name and labels.",
    .type = METRIC_COUNTER,
    .labels = "collector",
};
static const struct metric_desc connections = {
    .name = "waap_http_connections",
    .help = "Open HTTP connections.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc connections_evicted = {
    .name = "waap_http_connections_evicted_total",
    .help = "HTTP connections rejected or closed because of a limit or a timeout.",
    .type = METRIC_COUNTER,
};
static const struct metric_desc readers_cut = {
    .name = "waap_http_readers_cut_total",
    .help = "Clients disconnected while they read a response, because all responses exceeded "
            "--web.max-sending-size.",
    .type = METRIC_COUNTER,
};
static const struct metric_desc sending_bytes = {
    .name = "waap_http_sending_bytes",
    .help = "Responses above 64 KiB that clients have not read completely.",
    .type = METRIC_GAUGE,
    .unit = "bytes",
};
static const struct metric_desc reload_successful = {
    .name = "waap_config_last_reload_successful",
    .help = "Whether the last configuration reload succeeded (1) or failed (0).",
    .type = METRIC_GAUGE,
};
static const struct metric_desc reload_timestamp = {
    .name = "waap_config_last_reload_success_timestamp_seconds",
    .help = "Time of the last successful configuration reload since unix epoch in seconds.",
    .type = METRIC_GAUGE,
    .unit = "seconds",
};
static const struct metric_desc scrapes_in_flight = {
    .name = "waap_scrapes_in_flight",
    .help = "Requests that wait for their response, including this one.",
    .type = METRIC_GAUGE,
};

static const struct metric_desc push_connections = {
    .name = "waap_push_connections",
    .help = "Open plugin connections.",
    .type = METRIC_GAUGE,
};
static const struct metric_desc push_connections_cut = {
    .name = "waap_push_connections_cut_total",
    .help = "Plugin connections closed because the plugin did not read its replies.",
    .type = METRIC_COUNTER,
};
static const struct metric_desc push_connections_refused = {
    .name = "waap_push_connections_refused_total",
    .help = "Plugin connections rejected because of a limit.",
    .type = METRIC_COUNTER,
};

const struct metric_desc *const self_metrics_all[] = {
    &build_info,
    &collector_duration,
    &collector_last_success,
    &collector_success,
    &reload_timestamp,
    &reload_successful,
    &demo_running,
    &duplicate_series,
    &connections_evicted,
    &connections,
    &readers_cut,
    &http_stats_duration,
    &http_stats_requests,
    &sending_bytes,
    &push_connections_cut,
    &push_connections_refused,
    &push_connections,
    &scrapes_in_flight,
    NULL,
};

static void add_collector(const struct daemon *daemon, const struct engine_scrape *scrape,
                          size_t index, const struct labels *labels, struct snapshot *out) {
    const struct engine_entry *entry = engine_entry(daemon->engine, index);
    struct engine_status status = engine_status(daemon->engine, index);
    bool missed = (scrape->missed & UINT64_C(1) << index) != 0;
    snapshot_add(out, &collector_success, labels, !missed && entry->code == 0 ? 1 : 0);
    if (!missed) {
        snapshot_add(out, &collector_duration, labels, entry->duration_seconds);
    }
    if (status.last_success_seconds > 0) {
        snapshot_add(out, &collector_last_success, labels, status.last_success_seconds);
    }
    snapshot_add(out, &duplicate_series, labels, (double)status.duplicates);
}

static void add_daemon(const struct daemon *daemon, const struct labels *build,
                       struct snapshot *out) {
    const struct http_gate *gate = &daemon->http->gate;
    snapshot_add(out, &build_info, build, 1);
    if (daemon->demo != NULL) {
        snapshot_add(out, &demo_running, NULL, 1);
    }
    snapshot_add(out, &connections, NULL, (double)gate->n_clients);
    snapshot_add(out, &connections_evicted, NULL, (double)gate->n_evicted);
    const struct http_sendings *sendings = &daemon->http->sendings;
    snapshot_add(out, &readers_cut, NULL, (double)sendings->n_cut);
    snapshot_add(out, &sending_bytes, NULL, (double)sendings->n_bytes);
    snapshot_add(out, &scrapes_in_flight, NULL, (double)http_server_n_in_flight(daemon->http));
    snapshot_add(out, &reload_successful, NULL, daemon->reload_ok ? 1 : 0);
    snapshot_add(out, &reload_timestamp, NULL, daemon->reload_wall_seconds);
    struct push_socket_stats push = push_socket_stats(daemon->push_socket);
    snapshot_add(out, &push_connections, NULL, (double)push.n_connections);
    snapshot_add(out, &push_connections_cut, NULL, (double)push.n_cut);
    snapshot_add(out, &push_connections_refused, NULL, (double)push.n_refused);
    push_keeper_collect(daemon->push_keeper, out);
    http_stats_collect(daemon->http->stats, out);
}

struct self_metrics {
    struct snapshot snapshot; /* kept for its memory */
    struct labels *build;
    struct labels *collectors[ENGINE_MAX_COLLECTORS];
};

struct self_metrics *self_metrics_create(const struct engine *engine) {
    struct self_metrics *self = mem_zalloc(1, sizeof(*self));
    self->build = labels_render("version", VERSION_TEXT, "revision", version_revision, "compiler",
                                VERSION_COMPILER, "arch", VERSION_ARCH);
    for (size_t i = 0; i < engine_n_collectors(engine); i++) {
        self->collectors[i] = labels_render("collector", engine_status(engine, i).collector->name);
    }
    return self;
}

void self_metrics_destroy(struct self_metrics *self) {
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(self->collectors); i++) {
        labels_destroy(self->collectors[i]);
    }
    labels_destroy(self->build);
    snapshot_finish(&self->snapshot);
    free(self);
}

struct exposition_part *self_metrics_part(const struct daemon *daemon,
                                          const struct engine_scrape *scrape) {
    struct self_metrics *self = daemon->self_metrics;
    snapshot_reset(&self->snapshot);
    for (size_t i = 0; i < engine_n_collectors(daemon->engine); i++) {
        bool wanted = (scrape->want & UINT64_C(1) << i) != 0;
        if (wanted && engine_status(daemon->engine, i).state != ENGINE_WORKER_ABSENT) {
            add_collector(daemon, scrape, i, self->collectors[i], &self->snapshot);
        }
    }
    add_daemon(daemon, self->build, &self->snapshot);
    return exposition_part_create(&self->snapshot, NULL);
}
