#include "collectors/host/devices.h"

static void finish_device(void *row) {
    struct host_device *device = row;
    labels_destroy(device->labels);
}

void host_devices_init(struct host_devices *devices, const struct metric_desc *descs,
                       const struct settings *settings, const char *exclude) {
    *devices = (struct host_devices){
        .rows = {sizeof(struct host_device), finish_device},
        .descs = descs,
    };
    filter_init(&devices->exclude, settings, exclude);
}

void host_devices_finish(void *state) {
    struct host_devices *devices = state;
    rows_finish(&devices->rows);
    filter_finish(&devices->exclude);
}

struct host_device *host_devices_see(struct host_devices *devices, struct scan_word name) {
    struct host_device *device = rows_see(&devices->rows, name);
    if (device->row.is_new && !filter_excludes(&devices->exclude, device->row.key)) {
        device->labels = labels_render("device", device->row.key);
    }
    return device;
}

int host_devices_collect(void *state, struct buf *scratch, struct snapshot *out,
                         struct error *err) {
    (void)scratch;
    (void)err;
    struct host_devices *devices = state;
    const struct metric_desc *descs = devices->descs;
    rows_sweep(&devices->rows);
    /* Family by family: the snapshot finds the family of the previous sample at once. */
    for (size_t i = 0; descs[i].name != NULL; i++) {
        for (size_t row = 0; row < devices->rows.n; row++) {
            const struct host_device *device = (const struct host_device *)devices->rows.all[row];
            if (device->labels != NULL && i < device->n_values) {
                snapshot_add(out, &descs[i], device->labels, device->values[i]);
            }
        }
    }
    return 0;
}
