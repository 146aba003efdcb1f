#pragma once

#include "collectors/cgroup/container_path.h"
#include "collectors/nvml/device.h"
#include "collectors/source/energy.h"

/* How busy each process keeps a GPU, if the driver reports it. A zeroed struct is empty. */
struct nvml_loads {
    struct nvml_process_load *rows;
    unsigned cap_rows;
    bool never; /* not supported: a MIG GPU, an old driver */
};

/* Reads the loads of the last seconds. Returns the number of rows, one per process, whose loads may
 * be above 100 percent. */
unsigned nvml_loads_read(struct nvml_loads *loads, struct nvml_device *device);
void nvml_loads_finish(struct nvml_loads *loads);

/* The containers' shares of a GPU's work. A zeroed struct is empty. */
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
