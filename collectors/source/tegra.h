#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "collectors/collector.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"

/* The paths of the integrated GPU below sysfs. */
struct jetson_gpu_paths {
    char *device;  /* holds `load` and `power`; NULL: none, as on Thor */
    char *devfreq; /* holds cur_freq, min_freq, max_freq; NULL: none */
};

/* Finds the GPU of any generation. -ENODEV if there is none (its driver may load after boot). */
int jetson_gpu_find(const char *sysfs, struct jetson_gpu_paths *ret_paths, struct error *err);
void jetson_gpu_paths_finish(struct jetson_gpu_paths *paths);
#define CLEANUP_JETSON_GPU_PATHS CLEANUP(jetson_gpu_paths_finish)

/* Whether a device of that name, in the device tree or in /sys/class/devfreq, is the GPU's core:
 * "gv11b", "gpu", "17000000.ga10b", "gpu-gpc-0". */
bool jetson_gpu_name_matches(const char *name);

/* NVIDIA's chips with an integrated GPU. */

struct tegra_soc {
    const char *name;  /* "tegra194" */
    const char *gpu;   /* its name in CUDA */
    bool engine_loads; /* tegrastats knows the load of its engines */
    bool nvml;         /* the GPU's load and processes come from NVML only */
};

/* Looks at the device tree, then for an integrated GPU in sysfs. `*ret_soc` is NULL for an
 * unknown chip. -ENODEV if this is not a Tegra. */
int tegra_detect(const struct collector_env *env, const struct tegra_soc **ret_soc,
                 struct error *err);

/* Appends a file of the device tree: text that ends in NUL. */
int tegra_read_device_tree(const struct collector_env *env, const char *name, struct buf *out);

/* Whether NVML's name of a GPU, on a Tegra, is that of the integrated one, which belongs to the
 * collector `jetson`; a card belongs to `nvml`. */
bool tegra_gpu_is_integrated(const char *name);

/* Appends an identifier of the integrated GPU: a hash of the module's serial number, so it never
 * changes and does not reveal the number. Appends nothing if the text is not a serial number. */
void tegra_gpu_uuid(const char *serial, struct buf *out);

/* The chip in the device tree's "compatible", a list of strings that end in NUL; NULL if none of
 * them is a Tegra that we know. */
const struct tegra_soc *tegra_soc_parse(const char *text, size_t len);
