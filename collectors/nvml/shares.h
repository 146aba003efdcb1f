#pragma once

#include "collectors/cgroup/container_path.h"
#include "collectors/nvml/device.h"
#include "collectors/source/energy.h"

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

/* The containers' parts in what a GPU does. A zeroed struct is good. */
struct nvml_shares {
    struct energy_share *rows; /* the ids are good until the next reading */
    size_t n_rows;
    size_t cap_rows;
    struct nvml_loads loads;
    struct container_homes homes;
};

/* Finds them by the load of each process; returns the load of all processes, in percent. */
double nvml_shares_read(struct nvml_shares *shares, struct nvml_device *device);
void nvml_shares_finish(struct nvml_shares *shares);
