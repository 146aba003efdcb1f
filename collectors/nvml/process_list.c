#include "collectors/nvml/process_list.h"

#include <limits.h>
#include <stdlib.h>

#include "exporter/core/memory.h"

/* Entries were of 16, 24 and 32 bytes under one name in some drivers: room is made for the largest,
 * so that whatever comes stays within it. */
enum { MAX_ENTRY = 32, MAX_ENTRIES = 1 << 16, MAX_TURNS = 5 };

typedef unsigned list_fn(struct nvml_handle *device, unsigned *n, struct nvml_process *processes);
typedef unsigned list_v1_fn(struct nvml_handle *device, unsigned *n,
                            struct nvml_process_v1 *processes);

void nvml_process_list_finish(struct nvml_process_list *list) {
    free(list->uses);
    free(list->raw);
    *list = (struct nvml_process_list){0};
}

static bool make_room(struct nvml_process_list *list, unsigned n) {
    if (n > MAX_ENTRIES) {
        return false;
    }
    list->raw = mem_resize(list->raw, n, MAX_ENTRY);
    list->cap_raw = n;
    return true;
}

static void add(struct nvml_process_list *list, unsigned pid, unsigned long long bytes) {
    if (pid == 0 || pid > INT_MAX) {
        list->n_impossible++;
        return;
    }
    ARRAY_GROW(&list->uses, &list->cap_uses, list->n_uses + 1);
    list->uses[list->n_uses++] = (struct nvml_use){.pid = pid, .bytes = bytes};
}

/* The list may have grown since the driver said how long it is. */
static unsigned read_one(struct nvml_process_list *list, struct nvml_handle *device,
                         list_fn *function, list_v1_fn *function_v1) {
    if (function == NULL && function_v1 == NULL) {
        return NVML_CODE_FUNCTION_NOT_FOUND;
    }
    unsigned code = NVML_CODE_INSUFFICIENT_SIZE;
    unsigned n = 0;
    for (int turn = 0; turn < MAX_TURNS && code == NVML_CODE_INSUFFICIENT_SIZE; turn++) {
        if (list->cap_raw <= n && !make_room(list, n + n / 2 + 16)) {
            return NVML_CODE_INSUFFICIENT_SIZE;
        }
        n = list->cap_raw;
        code =
            function != NULL ? function(device, &n, list->raw) : function_v1(device, &n, list->raw);
    }
    if (code != NVML_CODE_SUCCESS) {
        return code;
    }
    n = n < list->cap_raw ? n : list->cap_raw;
    const struct nvml_process *processes = list->raw;
    const struct nvml_process_v1 *processes_v1 = list->raw;
    for (unsigned i = 0; i < n; i++) {
        if (function != NULL) {
            add(list, processes[i].pid, processes[i].used_memory);
        } else {
            add(list, processes_v1[i].pid, processes_v1[i].used_memory);
        }
    }
    return NVML_CODE_SUCCESS;
}

static int compare_pids(const void *a, const void *b) {
    const struct nvml_use *first = a, *second = b;
    return (first->pid > second->pid) - (first->pid < second->pid);
}

static uint64_t larger(uint64_t a, uint64_t b) {
    if (a == UINT64_MAX || b == UINT64_MAX) {
        return a == UINT64_MAX ? b : a;
    }
    return a > b ? a : b;
}

void nvml_process_list_merge(struct nvml_process_list *list) {
    if (list->n_uses == 0) {
        return;
    }
    qsort(list->uses, list->n_uses, sizeof(*list->uses), compare_pids);
    size_t kept = 0;
    for (size_t i = 1; i < list->n_uses; i++) {
        struct nvml_use *last = &list->uses[kept];
        if (last->pid == list->uses[i].pid) {
            last->bytes = larger(last->bytes, list->uses[i].bytes);
        } else {
            list->uses[++kept] = list->uses[i];
        }
    }
    list->n_uses = kept + 1;
}

static unsigned note(unsigned code, bool *never) {
    *never = nvml_verdict(code) == NVML_NEVER;
    return code;
}

unsigned nvml_process_list_read(struct nvml_process_list *list, const struct nvml_library *library,
                                struct nvml_handle *device) {
    unsigned compute = NVML_CODE_NOT_SUPPORTED;
    unsigned graphics = NVML_CODE_NOT_SUPPORTED;
    list->n_uses = 0;
    list->n_impossible = 0;
    if (!list->no_compute) {
        compute =
            note(read_one(list, device, library->compute_processes, library->compute_processes_v1),
                 &list->no_compute);
    }
    if (!list->no_graphics) {
        graphics = note(
            read_one(list, device, library->graphics_processes, library->graphics_processes_v1),
            &list->no_graphics);
    }
    nvml_process_list_merge(list);
    if (nvml_verdict(compute) == NVML_NEVER) {
        return graphics;
    }
    return nvml_verdict(graphics) == NVML_NEVER || compute != NVML_CODE_SUCCESS ? compute
                                                                                : graphics;
}
