#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/nvml/library.h"

/* One process on a GPU. */
struct nvml_use {
    unsigned pid;
    uint64_t bytes; /* UINT64_MAX: not known */
};

/* The processes of a GPU, sorted by pid, each once. A zeroed struct is an empty list. */
struct nvml_process_list {
    struct nvml_use *uses;
    size_t n_uses;
    size_t cap_uses;
    unsigned n_impossible; /* entries that were no processes */
    void *raw;
    unsigned cap_raw;
    bool no_compute; /* the GPU does not report them */
    bool no_graphics;
};

void nvml_process_list_finish(struct nvml_process_list *list);

/* Reads the processes that compute and those that draw. One that does both is listed once, with the
 * larger of both sizes, as they are the same memory. Returns the worse of both codes;
 * NVML_CODE_SUCCESS if one list could be read. */
unsigned nvml_process_list_read(struct nvml_process_list *list, const struct nvml_library *library,
                                struct nvml_handle *device);

/* Sorts by pid and merges, for a list filled by hand. */
void nvml_process_list_merge(struct nvml_process_list *list);
