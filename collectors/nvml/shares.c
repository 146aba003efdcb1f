#include "collectors/nvml/shares.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct nvml_shares *shares, size_t n) {
    if (n > shares->cap_rows) {
        struct energy_share *rows = reallocarray(shares->rows, n, sizeof(*rows));
        if (rows == NULL) {
            return false;
        }
        shares->rows = rows;
        shares->cap_rows = n;
    }
    return true;
}

static struct energy_share *find(struct nvml_shares *shares, const char *id) {
    for (size_t i = 0; i < shares->n_rows; i++) {
        if (strcmp(shares->rows[i].id, id) == 0) {
            return &shares->rows[i];
        }
    }
    shares->rows[shares->n_rows] = (struct energy_share){.id = id};
    return &shares->rows[shares->n_rows++];
}

double nvml_shares_read(struct nvml_shares *shares, struct nvml_device *device) {
    unsigned n_loads = nvml_loads_read(&shares->loads, device);
    double load = 0;
    shares->n_rows = 0;
    container_homes_begin(&shares->homes);
    for (unsigned i = 0; i < n_loads && make_room(shares, n_loads); i++) {
        const struct nvml_process_load *row = &shares->loads.rows[i];
        if (row->sm == 0 || row->sm > 100) {
            continue;
        }
        load += row->sm;
        const char *id =
            container_homes_see(&shares->homes, device->config->procfs, (pid_t)row->pid);
        if (id != NULL) {
            find(shares, id)->ratio += row->sm;
        }
    }
    for (size_t i = 0; i < shares->n_rows; i++) {
        shares->rows[i].ratio /= load;
    }
    return load;
}

void nvml_shares_finish(struct nvml_shares *shares) {
    free(shares->rows);
    nvml_loads_finish(&shares->loads);
    container_homes_finish(&shares->homes);
    *shares = (struct nvml_shares){0};
}
