#pragma once

#include "collectors/cgroup/container_path.h"
#include "collectors/nvml/loads.h"
#include "collectors/source/energy.h"

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
