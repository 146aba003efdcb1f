#pragma once

#include <stdbool.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"

/* Where the integrated GPU is, below sysfs. */
struct jetson_gpu_paths {
    char *device;  /* holds `load` and `power`; NULL: none, as on Thor */
    char *devfreq; /* holds cur_freq, min_freq, max_freq; NULL: none */
};

/* Finds the GPU of any generation. -ENODEV if there is none (yet: its driver may come after boot).
 */
int jetson_gpu_find(const char *sysfs, struct jetson_gpu_paths *ret_paths, struct error *err);
void jetson_gpu_paths_finish(struct jetson_gpu_paths *paths);
#define CLEANUP_JETSON_GPU_PATHS CLEANUP(jetson_gpu_paths_finish)

/* Whether a device of that name, in the device tree or in /sys/class/devfreq, is the GPU's core:
 * "gv11b", "gpu", "17000000.ga10b", "gpu-gpc-0". */
bool jetson_gpu_name_matches(const char *name);
