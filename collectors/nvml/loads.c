#include "collectors/nvml/loads.h"

#include <stdlib.h>

#include "exporter/core/clock.h"

/* The driver keeps a process' load for about a second; what is older is over. */
#define LOAD_WINDOW_USEC (3 * 1000 * 1000)

enum { MAX_LOADS = 1 << 14 };

/* The driver may tell of a process more than once. Returns how many rows are left. */
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
            unsigned cap = n + n / 2 + 16;
            void *rows = realloc(loads->rows, cap * sizeof(*loads->rows));
            loads->rows = rows != NULL ? rows : loads->rows;
            loads->cap_rows = rows != NULL ? cap : loads->cap_rows;
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
