#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/nvml/container.h"
#include "collectors/nvml/device.h"
#include "collectors/nvml/process_list.h"
#include "collectors/nvml/read.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

/* Who uses the GPU. */

struct processes {
    struct nvml_process_list list;
    struct nvml_containers *containers;
    bool never;
    struct buf labels; /* of this collection's processes, one behind the other */
    size_t *offsets;
    struct buf scratch;
};

static int process_open(struct nvml_device *device, void **ret_state) {
    struct processes *processes = mem_zalloc(1, sizeof(*processes));
    *ret_state = processes;
    processes->containers = nvml_containers_create();
    processes->offsets = mem_zalloc(device->config->max_processes, sizeof(*processes->offsets));
    return processes->containers != NULL && processes->offsets != NULL ? 0 : -ENOMEM;
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

/* The largest first, so that a limit cuts off the small ones. Sorts the list anew. */
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
    for (size_t i = 0; i < n && !processes->labels.failed; i++) {
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
    nvml_containers_collect(processes->containers, device, &processes->list, out);
    if (device->config->processes) {
        collect_each(device, processes, out);
    }
}

static void process_close(void *state) {
    struct processes *processes = state;
    if (processes != NULL) {
        nvml_process_list_finish(&processes->list);
        nvml_containers_destroy(processes->containers);
        buf_finish(&processes->labels);
        buf_finish(&processes->scratch);
        free(processes->offsets);
    }
    free(processes);
}

const struct nvml_part nvml_process_part = {
    .integrated = true,
    .open = process_open,
    .collect = process_collect,
    .close = process_close,
};
