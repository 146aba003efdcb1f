#pragma once

#include "collectors/nvml/device.h"

/* How much each process keeps a GPU busy, where the driver tells. A zeroed struct is good. */
struct nvml_loads {
    struct nvml_process_load *rows;
    unsigned cap_rows;
    bool never; /* not supported: a MIG GPU, an old driver */
};

/* Reads what the driver knows of the last seconds. Returns how many rows there are, one for each
 * process, which may hold more than 100 percent. */
unsigned nvml_loads_read(struct nvml_loads *loads, struct nvml_device *device);
void nvml_loads_finish(struct nvml_loads *loads);
