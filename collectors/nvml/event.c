#include "collectors/nvml/event.h"

#include <stdio.h>
#include <stdlib.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"

/* Application faults, memory errors, NVLink, page retirement, falling off the bus, firmware. */
static const unsigned usual_codes[] = {
    13, 31, 32, 38, 43, 45, 48, 61, 62, 63, 64, 69, 74, 79, 92, 94, 95, 109, 119, 120, 121, 140,
};

enum { MAX_CODES = 64, MAX_EVENTS_AT_ONCE = 256 };

/* increase() needs a value before the first event: other codes begin with a 0 for this long. */
#define ZERO_FIRST_NS (60 * CLOCK_NS_PER_SEC)

struct xid {
    unsigned long long code;
    double n;
    int64_t from_ns; /* shown as 0 before */
    struct labels *labels;
};

struct nvml_xids {
    const struct labels *gpu;
    bool reported;
    struct xid rows[MAX_CODES];
    size_t n_rows;
};

static struct xid *add_row(struct nvml_xids *xids, unsigned long long code, int64_t from_ns) {
    if (xids->n_rows == MAX_CODES) {
        return NULL;
    }
    char text[32];
    snprintf(text, sizeof(text), "%llu", code);
    struct xid *xid = &xids->rows[xids->n_rows++];
    *xid = (struct xid){
        .code = code, .from_ns = from_ns, .labels = labels_with(xids->gpu, "xid", text)};
    return xid;
}

struct nvml_xids *nvml_xids_create(const struct labels *gpu) {
    struct nvml_xids *xids = mem_zalloc(1, sizeof(*xids));
    xids->gpu = gpu;
    for (size_t i = 0; i < ARRAY_LEN(usual_codes); i++) {
        add_row(xids, usual_codes[i], 0);
    }
    return xids;
}

void nvml_xids_destroy(struct nvml_xids *xids) {
    for (size_t i = 0; xids != NULL && i < xids->n_rows; i++) {
        labels_destroy(xids->rows[i].labels);
    }
    free(xids);
}

void nvml_xids_note(struct nvml_xids *xids, unsigned long long code, int64_t now_ns) {
    struct xid *found = NULL;
    for (size_t i = 0; i < xids->n_rows && found == NULL; i++) {
        found = xids->rows[i].code == code ? &xids->rows[i] : NULL;
    }
    if (found == NULL) {
        found = add_row(xids, code, now_ns + ZERO_FIRST_NS);
    }
    if (found != NULL) {
        found->n++;
    }
}

void nvml_xids_collect(const struct nvml_xids *xids, struct snapshot *out) {
    int64_t now_ns = clock_monotonic_ns();
    for (size_t i = 0; i < xids->n_rows && xids->reported; i++) {
        const struct xid *xid = &xids->rows[i];
        snapshot_add(out, &nvml_descs[NVML_NVIDIA_XID_ERRORS], xid->labels,
                     now_ns >= xid->from_ns ? xid->n : 0);
    }
}

void nvml_events_open(struct nvml_events *events, const struct nvml_library *library,
                      struct nvml_device *devices, size_t n_devices) {
    *events = (struct nvml_events){.library = library};
    if (library->event_set_create == NULL || library->event_set_free == NULL ||
        library->event_wait == NULL || library->register_events == NULL ||
        library->event_set_create(&events->set) != NVML_CODE_SUCCESS) {
        events->set = NULL;
        return;
    }
    for (size_t i = 0; i < n_devices; i++) {
        if (devices[i].xids != NULL && devices[i].state == NVML_GOOD) {
            unsigned code =
                library->register_events(devices[i].handle, NVML_EVENT_XID, events->set);
            devices[i].xids->reported = code == NVML_CODE_SUCCESS;
        }
    }
}

void nvml_events_close(struct nvml_events *events) {
    if (events->set != NULL) {
        events->library->event_set_free(events->set);
    }
    *events = (struct nvml_events){0};
}

static void note(const struct nvml_event *event, struct nvml_device *devices, size_t n_devices) {
    for (size_t i = 0; i < n_devices; i++) {
        if (devices[i].handle == event->device && devices[i].xids != NULL) {
            nvml_xids_note(devices[i].xids, event->data, clock_monotonic_ns());
        }
    }
}

void nvml_events_drain(struct nvml_events *events, struct nvml_device *devices, size_t n_devices) {
    for (int i = 0; events->set != NULL && i < MAX_EVENTS_AT_ONCE; i++) {
        struct nvml_event event = {0};
        if (events->library->event_wait(events->set, &event, 0) != NVML_CODE_SUCCESS) {
            return;
        }
        if (event.type == NVML_EVENT_XID) {
            note(&event, devices, n_devices);
        }
    }
}
