#pragma once

#include <stdint.h>

#include "collectors/collector.h"
#include "exporter/core/buf.h"

/* The names under which jetson-exporter shows a node: tegra_*, in its spelling, percentages, CPUs
 * counted from 1. Queries that were written for it keep working beside ours. */
enum jetson_compat_metric {
    TEGRA_CPU_FREQUENCY,
    TEGRA_CPU_UTIL,
    TEGRA_EMC_FREQUENCY,
    TEGRA_EMC_UTIL,
    TEGRA_GPU_FREQUENCY,
    TEGRA_GPU_UTIL,
    TEGRA_LAST_UPDATED,
    TEGRA_LFB_NBLOCK,
    TEGRA_LFB_SIZE,
    TEGRA_MTS_BG,
    TEGRA_MTS_FG,
    TEGRA_RAM_TOTAL,
    TEGRA_RAM_USED,
    TEGRA_SWAP_CACHED,
    TEGRA_SWAP_TOTAL,
    TEGRA_SWAP_USED,
    TEGRA_TEMPERATURE,
    TEGRA_WATTAGE_AVERAGE,
    TEGRA_WATTAGE_CURRENT,
    JETSON_COMPAT_N_METRICS,
};

extern const struct metric_desc jetson_compat_descs[JETSON_COMPAT_N_METRICS + 1]; /* as above */

struct jetson_compat;

/* The caller destroys it. */
struct jetson_compat *jetson_compat_create(const struct collector_env *env);
void jetson_compat_destroy(struct jetson_compat *compat); /* accepts NULL */

/* Follows the load of the CPUs, for which tegrastats looked back one interval. */
void jetson_compat_sample(struct jetson_compat *compat, int64_t now_ns, struct buf *scratch);

/* Adds to a snapshot what it holds under our names once more under the others. */
void jetson_compat_add(struct jetson_compat *compat, struct snapshot *out);
