#include "collectors/host/devices.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

static void finish_row(struct host_device *device) {
    free(device->name);
    labels_destroy(device->labels);
}

void host_devices_finish(struct host_devices *devices) {
    for (size_t i = 0; i < devices->n_rows; i++) {
        finish_row(&devices->rows[i]);
    }
    free(devices->rows);
    filter_finish(&devices->exclude);
    *devices = (struct host_devices){0};
}

void host_devices_begin(struct host_devices *devices) {
    devices->round++;
    devices->next = 0;
}

static struct host_device *find(struct host_devices *devices, struct scan_word name) {
    for (size_t i = 0; i < devices->n_rows; i++) {
        size_t at = (devices->next + i) % devices->n_rows;
        struct host_device *device = &devices->rows[at];
        if (device->name_len == name.len && memcmp(device->name, name.text, name.len) == 0) {
            devices->next = at + 1;
            return device;
        }
    }
    return NULL;
}

static struct host_device *add(struct host_devices *devices, struct scan_word name) {
    ARRAY_GROW(&devices->rows, &devices->cap_rows, devices->n_rows + 1);
    struct host_device *device = &devices->rows[devices->n_rows++];
    *device = (struct host_device){.name = mem_strndup(name.text, name.len), .name_len = name.len};
    if (!filter_excludes(&devices->exclude, device->name)) {
        device->labels = labels_render("device", device->name);
    }
    devices->next = devices->n_rows;
    return device;
}

struct host_device *host_devices_see(struct host_devices *devices, struct scan_word name) {
    struct host_device *device = find(devices, name);
    if (device == NULL) {
        device = add(devices, name);
    }
    device->round = devices->round;
    return device;
}

void host_devices_sweep(struct host_devices *devices) {
    size_t kept = 0;
    for (size_t i = 0; i < devices->n_rows; i++) {
        if (devices->rows[i].round == devices->round) {
            devices->rows[kept++] = devices->rows[i];
        } else {
            finish_row(&devices->rows[i]);
        }
    }
    devices->n_rows = kept;
}

void host_devices_emit(const struct host_devices *devices, const struct metric_desc *descs,
                       struct snapshot *out) {
    /* Family by family: the snapshot finds the family of the previous sample at once. */
    for (size_t i = 0; descs[i].name != NULL; i++) {
        for (size_t row = 0; row < devices->n_rows; row++) {
            const struct host_device *device = &devices->rows[row];
            if (device->labels != NULL && i < device->n_values) {
                snapshot_add(out, &descs[i], device->labels, device->values[i]);
            }
        }
    }
}
