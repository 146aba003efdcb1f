#include "collectors/nvml/container.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/cgroup/container_path.h"
#include "collectors/nvml/loads.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

struct container {
    char *id; /* the path of its cgroup, as cAdvisor has it */
    struct labels *labels;
    unsigned round;
    double bytes;     /* NAN: not known of any process */
    unsigned percent; /* of time */
};

struct nvml_containers {
    struct container *containers;
    size_t n_containers;
    struct container_homes homes;
    struct nvml_loads loads;
    unsigned round;
};

struct nvml_containers *nvml_containers_create(void) {
    return mem_zalloc(1, sizeof(struct nvml_containers));
}

static void container_finish(struct container *container) {
    free(container->id);
    labels_destroy(container->labels);
}

void nvml_containers_destroy(struct nvml_containers *containers) {
    if (containers == NULL) {
        return;
    }
    for (size_t i = 0; i < containers->n_containers; i++) {
        container_finish(&containers->containers[i]);
    }
    container_homes_finish(&containers->homes);
    free(containers->containers);
    nvml_loads_finish(&containers->loads);
    free(containers);
}

static struct container *see_container(struct nvml_containers *containers,
                                       const struct nvml_device *device, const char *id) {
    for (size_t i = 0; i < containers->n_containers; i++) {
        if (strcmp(containers->containers[i].id, id) == 0) {
            return &containers->containers[i];
        }
    }
    size_t n = containers->n_containers;
    struct container *rows = realloc(containers->containers, (n + 1) * sizeof(*rows));
    if (rows == NULL) {
        return NULL;
    }
    containers->containers = rows;
    rows[n] = (struct container){
        .id = mem_strdup(id),
        .labels = labels_with(device->labels, "id", id),
    };
    if (rows[n].id == NULL || rows[n].labels == NULL) {
        container_finish(&rows[n]);
        return NULL;
    }
    containers->n_containers++;
    return &rows[n];
}

static void add_memory(struct nvml_containers *containers, const struct nvml_device *device,
                       const struct nvml_process_list *list) {
    const struct nvml_config *config = device->config;
    container_homes_begin(&containers->homes);
    for (size_t i = 0; i < list->n_uses && i < config->max_processes; i++) {
        pid_t pid = (pid_t)list->uses[i].pid;
        const char *id = container_homes_see(&containers->homes, config->procfs, pid);
        struct container *container = id != NULL ? see_container(containers, device, id) : NULL;
        if (container == NULL) {
            continue;
        }
        if (container->round != containers->round) {
            container->round = containers->round;
            container->bytes = NAN;
            container->percent = 0;
        }
        if (list->uses[i].bytes != UINT64_MAX) {
            double sum = isnan(container->bytes) ? 0 : container->bytes;
            container->bytes = sum + (double)list->uses[i].bytes;
        }
    }
}

static void add_loads(struct nvml_containers *containers, struct nvml_device *device) {
    unsigned n = nvml_loads_read(&containers->loads, device);
    for (unsigned i = 0; i < n; i++) {
        const struct nvml_process_load *load = &containers->loads.rows[i];
        const char *id = container_homes_find(&containers->homes, (pid_t)load->pid);
        if (id == NULL) {
            continue;
        }
        if (load->sm > 100) {
            device->n_impossible++;
            continue;
        }
        struct container *container = see_container(containers, device, id);
        if (container != NULL) {
            container->percent += load->sm;
        }
    }
}

static void sweep(struct nvml_containers *containers) {
    size_t kept = 0;
    for (size_t i = 0; i < containers->n_containers; i++) {
        if (containers->containers[i].round == containers->round) {
            containers->containers[kept++] = containers->containers[i];
        } else {
            container_finish(&containers->containers[i]);
        }
    }
    containers->n_containers = kept;
}

void nvml_containers_collect(struct nvml_containers *containers, struct nvml_device *device,
                             const struct nvml_process_list *list, struct snapshot *out) {
    containers->round++;
    add_memory(containers, device, list);
    sweep(containers);
    if (containers->n_containers > 0) {
        add_loads(containers, device);
    }
    for (size_t i = 0; i < containers->n_containers; i++) {
        const struct container *container = &containers->containers[i];
        nvml_device_add(device, out, &gpu_descs[CONTAINER_GPU_MEMORY], container->labels,
                        container->bytes, INFINITY);
        if (!containers->loads.never) {
            nvml_device_add(device, out, &gpu_descs[CONTAINER_GPU_UTILIZATION], container->labels,
                            fmin(container->percent, 100) / 100, 1);
        }
    }
}
