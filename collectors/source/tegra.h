#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "collectors/collector.h"
#include "exporter/core/buf.h"
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

/* NVIDIA's chips with a GPU inside: who this machine is, for all that treat them apart. */

struct tegra_soc {
    const char *name;  /* "tegra194" */
    const char *gpu;   /* as CUDA calls it */
    bool engine_loads; /* tegrastats knows the load of its engines */
    bool nvml;         /* the GPU's load and processes are told by NVML alone */
};

/* Looks at the device tree, then for an integrated GPU in sysfs. `*ret_soc` is NULL for a chip that
 * we do not know. -ENODEV where this is no Tegra. */
int tegra_detect(const struct collector_env *env, const struct tegra_soc **ret_soc,
                 struct error *err);

/* Appends a file of the device tree: text that ends in NUL. */
int tegra_read_device_tree(const struct collector_env *env, const char *name, struct buf *out);

/* Whether NVML's name of a GPU, on a Tegra, is that of the GPU inside: it belongs to the collector
 * `jetson`, and a card in a slot to `nvml`. */
bool tegra_gpu_is_integrated(const char *name);

/* Appends an identifier of the integrated GPU, made from the module's serial number by a hash: the
 * same for the module's life, whatever runs on it, and not the serial number itself. Appends
 * nothing where the text is no serial number. */
void tegra_gpu_uuid(const char *serial, struct buf *out);

/* The chip in the device tree's "compatible", a list of strings that end in NUL; NULL if none of
 * them is a Tegra that we know. */
const struct tegra_soc *tegra_soc_parse(const char *text, size_t len);
