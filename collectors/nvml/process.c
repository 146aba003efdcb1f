#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/cgroup/container_path.h"
#include "collectors/nvml/device.h"
#include "collectors/nvml/process_list.h"
#include "collectors/nvml/shares.h"
#include "collectors/source/rows.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

/* The processes and containers that use the GPU. */

/* ---- containers ---- */

struct container {
    struct row row; /* the path of its cgroup, as cAdvisor has it */
    struct labels *labels;
    double bytes;     /* NAN: not known of any process */
    unsigned percent; /* of time */
};

struct containers {
    struct rows rows;
    struct container_homes homes;
    struct nvml_loads loads;
};

static void container_finish(void *row) {
    struct container *container = row;
    labels_destroy(container->labels);
}

static struct container *see_container(struct containers *containers,
                                       const struct nvml_device *device, const char *id) {
    struct container *container = rows_see(&containers->rows, (struct scan_word){id, strlen(id)});
    if (container->row.is_new) {
        container->labels = labels_with(device->labels, "id", id);
    }
    if (!container->row.again) {
        container->bytes = NAN;
        container->percent = 0;
    }
    return container;
}

static void add_memory(struct containers *containers, const struct nvml_device *device,
                       const struct nvml_process_list *list) {
    const struct nvml_config *config = device->config;
    container_homes_begin(&containers->homes);
    for (size_t i = 0; i < list->n_uses && i < config->max_processes; i++) {
        pid_t pid = (pid_t)list->uses[i].pid;
        const char *id = container_homes_see(&containers->homes, config->procfs, pid);
        struct container *container = id != NULL ? see_container(containers, device, id) : NULL;
        if (container != NULL && list->uses[i].bytes != UINT64_MAX) {
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

static void containers_collect(struct containers *containers, struct nvml_device *device,
                               const struct nvml_process_list *list, struct snapshot *out) {
    add_memory(containers, device, list);
    if (containers->rows.n > 0) {
        add_loads(containers, device);
    }
    rows_sweep(&containers->rows);
    for (size_t i = 0; i < containers->rows.n; i++) {
        struct container *container = (struct container *)containers->rows.all[i];
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

static void process_open(void *state, const struct nvml_device *device) {
    struct processes *processes = state;
    processes->offsets = mem_zalloc(device->config->max_processes, sizeof(*processes->offsets));
    processes->containers.rows = (struct rows){sizeof(struct container), container_finish};
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
    rows_finish(&processes->containers.rows);
    container_homes_finish(&processes->containers.homes);
    nvml_loads_finish(&processes->containers.loads);
    buf_finish(&processes->labels);
    buf_finish(&processes->scratch);
    free(processes->offsets);
}

const struct nvml_part nvml_process_part = {
    .integrated = true,
    .state_size = sizeof(struct processes),
    .open = process_open,
    .collect = process_collect,
    .close = process_close,
};
