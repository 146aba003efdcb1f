#pragma once

#include "collectors/nvml/device.h"

/* The Xid errors of one GPU, counted by code. */
struct nvml_xids;

struct nvml_xids *nvml_xids_create(const struct labels *gpu);
void nvml_xids_destroy(struct nvml_xids *xids); /* accepts NULL */

/* Counts one; the codes that matter most are there from the beginning, at 0. */
void nvml_xids_note(struct nvml_xids *xids, unsigned long long code, int64_t now_ns);

/* Adds them, once nvml_events_open has found that the GPU reports them. */
void nvml_xids_collect(const struct nvml_xids *xids, struct snapshot *out);

/* Where the driver leaves events of all GPUs. */
struct nvml_events {
    const struct nvml_library *library;
    struct nvml_event_set *set; /* NULL: none */
};

/* Asks for the events of the GPUs; those that cannot report any are left out. */
void nvml_events_open(struct nvml_events *events, const struct nvml_library *library,
                      struct nvml_device *devices, size_t n_devices);
void nvml_events_close(struct nvml_events *events); /* accepts a zeroed struct */

/* Takes what has arrived; does not wait. */
void nvml_events_drain(struct nvml_events *events, struct nvml_device *devices, size_t n_devices);
