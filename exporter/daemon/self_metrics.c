#include "exporter/daemon/self_metrics.h"

#include "exporter/core/memory.h"
#include "exporter/core/version.h"
#include "exporter/daemon/daemon.h"
#include "exporter/http/process_metrics.h"
#include "exporter/http/stats.h"

enum {
    BUILD_INFO,
    COLLECTOR_DURATION,
    COLLECTOR_LAST_SUCCESS,
    COLLECTOR_SUCCESS,
    RELOAD_TIMESTAMP,
    RELOAD_SUCCESSFUL,
    DEMO_RUNNING,
    DUPLICATE_SERIES,
    CONNECTIONS,
    CONNECTIONS_EVICTED,
    READERS_CUT,
    SENDING_BYTES,
    PUSH_CONNECTIONS,
    PUSH_CONNECTIONS_CUT,
    PUSH_CONNECTIONS_REFUSED,
    SCRAPES_IN_FLIGHT,
    N_METRICS
};

const struct metric_desc self_metrics[] = {
    [BUILD_INFO] = {"waap_build_info",
                    "Version, revision, compiler and architecture of waap; always 1.", METRIC_INFO,
                    NULL, "version, revision, compiler, arch"},
    [COLLECTOR_DURATION] = {"waap_collector_duration_seconds",
                            "Duration of the collector in this scrape.", METRIC_GAUGE, "seconds",
                            "collector"},
    [COLLECTOR_LAST_SUCCESS] =
        {"waap_collector_last_success_timestamp_seconds",
         "Time of the last success of the collector since unix epoch in seconds.", METRIC_GAUGE,
         "seconds", "collector"},
    [COLLECTOR_SUCCESS] =
        {"waap_collector_success",
         "Whether the collector succeeded in this scrape (1), or failed or was too late (0).",
         METRIC_GAUGE, NULL, "collector"},
    [RELOAD_TIMESTAMP] =
        {"waap_config_last_reload_success_timestamp_seconds",
         "Time of the last successful configuration reload since unix epoch in seconds.",
         METRIC_GAUGE, "seconds"},
    [RELOAD_SUCCESSFUL] = {"waap_config_last_reload_successful",
                           "Whether the last configuration reload succeeded (1) or failed (0).",
                           METRIC_GAUGE},
    [DEMO_RUNNING] = {"waap_demo", "1 if the values are simulated, see --demo; absent otherwise.",
                      METRIC_GAUGE},
    [DUPLICATE_SERIES] = {"waap_duplicate_series_total",
                          "Series dropped because of an earlier one with the same name and labels.",
                          METRIC_COUNTER, NULL, "collector"},
    [CONNECTIONS] = {"waap_http_connections", "Open HTTP connections.", METRIC_GAUGE},
    [CONNECTIONS_EVICTED] = {"waap_http_connections_evicted_total",
                             "HTTP connections rejected or closed because of a limit or a timeout.",
                             METRIC_COUNTER},
    [READERS_CUT] =
        {"waap_http_readers_cut_total",
         "Clients disconnected while they read a response, because all responses exceeded "
         "--web.max-sending-size.",
         METRIC_COUNTER},
    [SENDING_BYTES] = {"waap_http_sending_bytes",
                       "Responses above 64 KiB that clients have not read completely.",
                       METRIC_GAUGE, "bytes"},
    [PUSH_CONNECTIONS] = {"waap_push_connections", "Open plugin connections.", METRIC_GAUGE},
    [PUSH_CONNECTIONS_CUT] =
        {"waap_push_connections_cut_total",
         "Plugin connections closed because the plugin did not read its replies.", METRIC_COUNTER},
    [PUSH_CONNECTIONS_REFUSED] = {"waap_push_connections_refused_total",
                                  "Plugin connections rejected because of a limit.",
                                  METRIC_COUNTER},
    [SCRAPES_IN_FLIGHT] = {"waap_scrapes_in_flight",
                           "Requests that wait for their response, including this one.",
                           METRIC_GAUGE},
    [N_METRICS] = {0},
};

static void add_collector(const struct daemon *daemon, const struct engine_scrape *scrape,
                          size_t index, const struct labels *labels, struct snapshot *out) {
    const struct engine_entry *entry = engine_entry(daemon->engine, index);
    struct engine_status status = engine_status(daemon->engine, index);
    bool missed = (scrape->missed & UINT64_C(1) << index) != 0;
    snapshot_add(out, &self_metrics[COLLECTOR_SUCCESS], labels,
                 !missed && entry->code == 0 ? 1 : 0);
    if (!missed) {
        snapshot_add(out, &self_metrics[COLLECTOR_DURATION], labels, entry->duration_seconds);
    }
    if (status.last_success_seconds > 0) {
        snapshot_add(out, &self_metrics[COLLECTOR_LAST_SUCCESS], labels,
                     status.last_success_seconds);
    }
    snapshot_add(out, &self_metrics[DUPLICATE_SERIES], labels, (double)status.duplicates);
}

static void add_daemon(const struct daemon *daemon, const struct labels *build,
                       struct snapshot *out) {
    const struct http_gate *gate = &daemon->http->gate;
    snapshot_add(out, &self_metrics[BUILD_INFO], build, 1);
    if (daemon->demo != NULL) {
        snapshot_add(out, &self_metrics[DEMO_RUNNING], NULL, 1);
    }
    snapshot_add(out, &self_metrics[CONNECTIONS], NULL, (double)gate->n_clients);
    snapshot_add(out, &self_metrics[CONNECTIONS_EVICTED], NULL, (double)gate->n_evicted);
    const struct http_sendings *sendings = &daemon->http->sendings;
    snapshot_add(out, &self_metrics[READERS_CUT], NULL, (double)sendings->n_cut);
    snapshot_add(out, &self_metrics[SENDING_BYTES], NULL, (double)sendings->n_bytes);
    snapshot_add(out, &self_metrics[SCRAPES_IN_FLIGHT], NULL,
                 (double)(daemon->http->n_scrapes + daemon->http->n_tasks));
    snapshot_add(out, &self_metrics[RELOAD_SUCCESSFUL], NULL, daemon->reload_ok ? 1 : 0);
    snapshot_add(out, &self_metrics[RELOAD_TIMESTAMP], NULL, daemon->reload_wall_seconds);
    struct push_socket_stats push = push_socket_stats(daemon->push_socket);
    snapshot_add(out, &self_metrics[PUSH_CONNECTIONS], NULL, (double)push.n_connections);
    snapshot_add(out, &self_metrics[PUSH_CONNECTIONS_CUT], NULL, (double)push.n_cut);
    snapshot_add(out, &self_metrics[PUSH_CONNECTIONS_REFUSED], NULL, (double)push.n_refused);
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
