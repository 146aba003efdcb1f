#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/cgroup/container_path.h"
#include "collectors/nvml/device.h"
#include "collectors/nvml/process_list.h"
#include "collectors/nvml/read.h"
#include "collectors/nvml/shares.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

/* The processes and containers that use the GPU. */

/* ---- containers ---- */

struct container {
    char *id; /* the path of its cgroup, as cAdvisor has it */
    struct labels *labels;
    unsigned round;
    double bytes;     /* NAN: not known of any process */
    unsigned percent; /* of time */
};

struct containers {
    struct container *containers;
    size_t n_containers;
    size_t cap_containers;
    struct container_homes homes;
    struct nvml_loads loads;
    unsigned round;
};

static void container_finish(struct container *container) {
    free(container->id);
    labels_destroy(container->labels);
}

static void containers_finish(struct containers *containers) {
    for (size_t i = 0; i < containers->n_containers; i++) {
        container_finish(&containers->containers[i]);
    }
    container_homes_finish(&containers->homes);
    free(containers->containers);
    nvml_loads_finish(&containers->loads);
}

static struct container *see_container(struct containers *containers,
                                       const struct nvml_device *device, const char *id) {
    for (size_t i = 0; i < containers->n_containers; i++) {
        if (strcmp(containers->containers[i].id, id) == 0) {
            return &containers->containers[i];
        }
    }
    ARRAY_GROW(&containers->containers, &containers->cap_containers, containers->n_containers + 1);
    struct container *container = &containers->containers[containers->n_containers++];
    *container = (struct container){
        .id = mem_strdup(id),
        .labels = labels_with(device->labels, "id", id),
    };
    return container;
}

static void add_memory(struct containers *containers, const struct nvml_device *device,
                       const struct nvml_process_list *list) {
    const struct nvml_config *config = device->config;
    container_homes_begin(&containers->homes);
    for (size_t i = 0; i < list->n_uses && i < config->max_processes; i++) {
        pid_t pid = (pid_t)list->uses[i].pid;
        const char *id = container_homes_see(&containers->homes, config->procfs, pid);
        if (id == NULL) {
            continue;
        }
        struct container *container = see_container(containers, device, id);
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

static void add_loads(struct containers *containers, struct nvml_device *device) {
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
        see_container(containers, device, id)->percent += load->sm;
    }
}

static void sweep(struct containers *containers) {
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

static void containers_collect(struct containers *containers, struct nvml_device *device,
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

/* ---- processes ---- */

struct processes {
    struct nvml_process_list list;
    struct containers containers;
    bool never;
    struct buf labels; /* of this collection's processes, one behind the other */
    size_t *offsets;
    struct buf scratch;
};

static void *process_open(struct nvml_device *device) {
    struct processes *processes = mem_zalloc(1, sizeof(*processes));
    processes->offsets = mem_zalloc(device->config->max_processes, sizeof(*processes->offsets));
    return processes;
}

/* The process' name; "" if it is gone, or of another pid namespace. */
static const char *read_comm(struct processes *processes, const char *procfs, const char *pid) {
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/%s/comm", procfs, pid);
    if (file_read(buf_str(&path), &processes->scratch, NULL) < 0) {
        return "";
    }
    buf_truncate(&processes->scratch, strcspn(buf_str(&processes->scratch), "\n"));
    return buf_str(&processes->scratch);
}

static int compare_sizes(const void *a, const void *b) {
    const struct nvml_use *first = a, *second = b;
    if (first->bytes != second->bytes) {
        return first->bytes < second->bytes ? 1 : -1;
    }
    return (first->pid > second->pid) - (first->pid < second->pid);
}

/* The largest first, so that a limit cuts off the small ones. Changes the order of the list. */
static void collect_each(struct nvml_device *device, struct processes *processes,
                         struct snapshot *out) {
    struct nvml_process_list *list = &processes->list;
    const struct nvml_config *config = device->config;
    size_t n = list->n_uses < config->max_processes ? list->n_uses : config->max_processes;
    char gpu[16], pid[16];
    snprintf(gpu, sizeof(gpu), "%u", config->integrated ? 0 : device->index);
    if (list->n_uses > 1) {
        qsort(list->uses, list->n_uses, sizeof(*list->uses), compare_sizes);
    }
    buf_reset(&processes->labels);
    for (size_t i = 0; i < n; i++) {
        snprintf(pid, sizeof(pid), "%u", list->uses[i].pid);
        const struct label labels[] = {
            {"gpu", gpu},
            {"uuid", device->uuid},
            {"pid", pid},
            {"comm", read_comm(processes, config->procfs, pid)},
        };
        processes->offsets[i] = labels_append(&processes->labels, labels, ARRAY_LEN(labels));
    }
    for (size_t i = 0; i < n; i++) {
        const void *labels = processes->labels.data + processes->offsets[i];
        double bytes = list->uses[i].bytes != UINT64_MAX ? (double)list->uses[i].bytes : NAN;
        nvml_device_add(device, out, &gpu_descs[GPU_PROCESS_MEMORY], labels, bytes, NVML_MAX_BYTES);
    }
}

static void process_collect(struct nvml_device *device, void *state, struct snapshot *out) {
    struct processes *processes = state;
    if (processes->never) {
        return;
    }
    unsigned code = nvml_process_list_read(&processes->list, device->library, device->handle);
    if (!nvml_device_check(device, code, &processes->never)) {
        return;
    }
    device->n_impossible += processes->list.n_impossible;
    nvml_device_add(device, out, &gpu_descs[GPU_PROCESSES], NULL, (double)processes->list.n_uses,
                    INFINITY);
    containers_collect(&processes->containers, device, &processes->list, out);
    if (device->config->processes) {
        collect_each(device, processes, out);
    }
}

static void process_close(void *state) {
    struct processes *processes = state;
    nvml_process_list_finish(&processes->list);
    containers_finish(&processes->containers);
    buf_finish(&processes->labels);
    buf_finish(&processes->scratch);
    free(processes->offsets);
    free(processes);
}

const struct nvml_part nvml_process_part = {
    .integrated = true,
    .open = process_open,
    .collect = process_collect,
    .close = process_close,
};
