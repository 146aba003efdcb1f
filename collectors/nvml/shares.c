#include "collectors/nvml/shares.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/memory.h"

/* The driver keeps a process' load for about a second; older loads have ended. */
#define LOAD_WINDOW_USEC (3 * 1000 * 1000)

enum { MAX_LOADS = 1 << 14 };

/* The driver may list a process more than once. Returns how many rows are left. */
static unsigned keep_latest(struct nvml_process_load *rows, unsigned n) {
    unsigned kept = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned at = 0;
        while (at < kept && rows[at].pid != rows[i].pid) {
            at++;
        }
        if (at == kept || rows[i].timestamp_usec >= rows[at].timestamp_usec) {
            rows[at] = rows[i];
        }
        kept += at == kept;
    }
    return kept;
}

unsigned nvml_loads_read(struct nvml_loads *loads, struct nvml_device *device) {
    if (device->library->process_loads == NULL || loads->never) {
        loads->never = true;
        return 0;
    }
    unsigned long long since_usec =
        (unsigned long long)(clock_wall_seconds() * 1e6) - LOAD_WINDOW_USEC;
    unsigned code = NVML_CODE_INSUFFICIENT_SIZE;
    unsigned n = 0;
    for (int turn = 0; turn < 4 && code == NVML_CODE_INSUFFICIENT_SIZE; turn++) {
        n = loads->cap_rows;
        code = device->library->process_loads(device->handle, loads->rows, &n, since_usec);
        if (code == NVML_CODE_INSUFFICIENT_SIZE && n <= MAX_LOADS) {
            loads->cap_rows = n + n / 2 + 16;
            loads->rows = mem_resize(loads->rows, loads->cap_rows, sizeof(*loads->rows));
        }
    }
    if (!nvml_device_check(device, code, &loads->never)) {
        return 0;
    }
    return keep_latest(loads->rows, n < loads->cap_rows ? n : loads->cap_rows);
}

void nvml_loads_finish(struct nvml_loads *loads) {
    free(loads->rows);
    *loads = (struct nvml_loads){0};
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
    ARRAY_GROW(&shares->rows, &shares->cap_rows, n_loads);
    for (unsigned i = 0; i < n_loads; i++) {
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
