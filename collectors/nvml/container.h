#pragma once

#include "collectors/nvml/device.h"
#include "collectors/nvml/process_list.h"

/* What the containers take of one GPU: its processes, added up by the container they run in. */
struct nvml_containers;

struct nvml_containers *nvml_containers_create(void);             /* NULL when memory is out */
void nvml_containers_destroy(struct nvml_containers *containers); /* accepts NULL */

/* Adds memory and, where the driver tells it by process, load. */
void nvml_containers_collect(struct nvml_containers *containers, struct nvml_device *device,
                             const struct nvml_process_list *list, struct snapshot *out);
