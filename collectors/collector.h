#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/error.h"
#include "exporter/metrics/metric.h"
#include "exporter/metrics/snapshot.h"

struct energy;
struct nvml_library;
struct option;
struct push_store;
struct settings;

/* Where the system is seen: "/proc", "/sys", … on a host, other places in a container or a test.
 * The strings live as long as the collector is open. */
struct collector_env {
    const char *procfs;
    const char *sysfs;
    const char *cgroupfs;
    const char *rootfs; /* the host's "/", for what /proc/mounts names */
    const struct settings *settings;
    struct energy *energy;           /* that collectors tell each other of; or NULL */
    const struct nvml_library *nvml; /* instead of the driver's library; or NULL */
    struct push_store *push_store;   /* what plugins pushed; NULL: nothing can be */
};

/* One source of metrics. All calls for one state come from one thread, never two at once; a call
 * that hangs delays nobody else. A collector neither logs nor measures itself: the engine does. */
struct collector {
    const char *name; /* YAML key, flag, `collector` label, file name, fixture folder, test */
    const char *help; /* what it reads, for --list-collectors */
    const struct metric_desc *const *metrics; /* all it may emit by itself, NULL-terminated */
    const struct metric_desc *const *tables;  /* and those of tables that end in a nameless row */
    const struct option *options; /* its own settings, ended by a nameless row; or NULL */
    bool on_by_default;

    /* Prepares; -ENODEV where this machine has no such source (asked again now and then). */
    int (*open)(const struct collector_env *env, void **ret_state, struct error *err);

    /* Optional: called at sample rate between collections, for integrals and peaks. */
    int (*sample)(void *state);

    /* Optional: between all others, called whenever the descriptor that `wake_fd` tells is
     * readable: for what cannot wait for the next sample. It must leave the descriptor unreadable.
     * `wake_fd` is asked once, after open; -1: nothing will wake it. */
    int (*wake_fd)(void *state);
    void (*wake)(void *state);

    /* Adds what it sees now. What it added stays valid until the next call. On failure what was
     * added up to then is still served. -ENODATA: nothing to say at the moment, not a failure. */
    int (*collect)(void *state, struct snapshot *out, struct error *err);

    void (*close)(void *state);
};

/* The i-th metric of `metrics` and `tables` together; NULL beyond the last one. */
static inline const struct metric_desc *collector_metric(const struct collector *collector,
                                                         size_t i) {
    const struct metric_desc *const *metric = collector->metrics;
    for (; metric != NULL && *metric != NULL; metric++) {
        if (i-- == 0) {
            return *metric;
        }
    }
    const struct metric_desc *const *table = collector->tables;
    for (; table != NULL && *table != NULL; table++) {
        for (const struct metric_desc *row = *table; row->name != NULL; row++) {
            if (i-- == 0) {
                return row;
            }
        }
    }
    return NULL;
}
