#include "collectors/jetson/fill.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collectors/jetson/compat.h"
#include "collectors/jetson/metrics.h"
#include "collectors/jetson/rail_rule.h"
#include "collectors/source/gpu_metrics.h"
#include "exporter/core/cleanup.h"

struct filling {
    const struct tegrastats_line *line;
    const struct jetson_board *board;
    struct label_pool *pool;
    struct snapshot *out;
};

bool jetson_snapshot_has(const struct snapshot *snapshot, const struct metric_desc *desc,
                         const struct labels *labels) {
    for (size_t i = 0; i < snapshot->n_families; i++) {
        const struct family *family = &snapshot->families[i];
        if (family->desc != desc) {
            continue;
        }
        for (size_t j = 0; j < family->n_samples; j++) {
            if (labels == NULL || labels_equal(family->samples[j].labels, labels)) {
                return true;
            }
        }
    }
    return false;
}

/* A value that the line does not have is NAN. */
static void fill(struct filling *filling, const struct metric_desc *desc,
                 const struct labels *labels, double value) {
    if (!isnan(value) && !jetson_snapshot_has(filling->out, desc, labels)) {
        snapshot_add(filling->out, desc, labels, value);
    }
}

static void fill_named(struct filling *filling, enum jetson_metric metric, const char *label,
                       const char *name, double value) {
    const struct labels *labels =
        isnan(value) ? NULL : label_pool_render(filling->pool, label, name);
    if (labels != NULL) {
        fill(filling, &jetson_descs[metric], labels, value);
    }
}

static void fill_plain(struct filling *filling) {
    const struct tegrastats_line *line = filling->line;
    const struct {
        enum jetson_metric metric;
        double value;
    } rows[] = {
        {JETSON_EMC_FREQUENCY, line->emc_frequency_hertz},
        {JETSON_EMC_UTILIZATION, line->emc_load_ratio},
        {JETSON_FREE_BLOCKS, line->ram.free_blocks},
        {JETSON_FREE_BLOCK_BYTES, line->ram.free_block_bytes},
        {JETSON_IRAM_TOTAL, line->iram.total_bytes},
        {JETSON_IRAM_USED, line->iram.used_bytes},
        {JETSON_MEMORY_TOTAL, line->ram.total_bytes},
        {JETSON_MEMORY_USED, line->ram.used_bytes},
        {JETSON_SWAP_CACHED, line->swap.cached_bytes},
        {JETSON_SWAP_TOTAL, line->swap.total_bytes},
        {JETSON_SWAP_USED, line->swap.used_bytes},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        fill(filling, &jetson_descs[rows[i].metric], NULL, rows[i].value);
    }
}

static void fill_gpu(struct filling *filling) {
    const struct tegrastats_line *line = filling->line;
    const struct labels *gpu = filling->board->gpu;
    fill(filling, &gpu_descs[GPU_UTILIZATION], gpu, line->gpu_load_ratio);
    fill(filling, &gpu_descs[GPU_FREQUENCY], gpu, line->gpu_frequency_hertz);
    fill(filling, &gpu_descs[GPU_MEMORY_TOTAL], gpu, line->ram.total_bytes);
    for (size_t i = 0; i < line->n_gpcs; i++) {
        char number[24];
        snprintf(number, sizeof(number), "%zu", i);
        fill_named(filling, JETSON_GPC_FREQUENCY, "gpc", number, line->gpc_frequency_hertz[i]);
    }
}

static void fill_cpus(struct filling *filling) {
    for (size_t i = 0; i < filling->line->n_cpus; i++) {
        const struct tegrastats_cpu *cpu = &filling->line->cpus[i];
        char number[24];
        snprintf(number, sizeof(number), "%zu", i);
        fill_named(filling, JETSON_CPU_ONLINE, "cpu", number, cpu->online);
        fill_named(filling, JETSON_CPU_FREQUENCY, "cpu", number, cpu->frequency_hertz);
    }
}

/* Where the files tell whether an engine is clocked, they tell its clock as well; its load is often
 * known to tegrastats alone. */
static void fill_engines(struct filling *filling) {
    for (size_t i = 0; i < filling->line->n_engines; i++) {
        const struct tegrastats_engine *engine = &filling->line->engines[i];
        const struct labels *labels = label_pool_render(filling->pool, "engine", engine->name);
        if (labels == NULL) {
            return;
        }
        if (!jetson_snapshot_has(filling->out, &jetson_descs[JETSON_ENGINE_ACTIVE], labels)) {
            fill(filling, &jetson_descs[JETSON_ENGINE_ACTIVE], labels, engine->active);
            fill(filling, &jetson_descs[JETSON_ENGINE_FREQUENCY], labels, engine->frequency_hertz);
        }
        fill(filling, &jetson_descs[JETSON_ENGINE_UTILIZATION], labels, engine->load_ratio);
    }
}

static void fill_zones(struct filling *filling) {
    for (size_t i = 0; i < filling->line->n_zones; i++) {
        const struct tegrastats_zone *zone = &filling->line->zones[i];
        fill_named(filling, JETSON_TEMPERATURE, "zone", zone->name, zone->celsius);
        if (strcmp(zone->name, "gpu") == 0) {
            fill(filling, &gpu_descs[GPU_TEMPERATURE], filling->board->gpu, zone->celsius);
        }
    }
}

static void fill_total_power(struct filling *filling) {
    const struct tegrastats_line *line = filling->line;
    const char *names[TEGRASTATS_MAX_RAILS];
    size_t members[JETSON_RAIL_MAX_MEMBERS];
    for (size_t i = 0; i < line->n_rails; i++) {
        names[i] = line->rails[i].name;
    }
    size_t n = jetson_rail_rule(names, line->n_rails, members);
    double watts = n > 0 ? 0 : NAN;
    for (size_t i = 0; i < n; i++) {
        watts += line->rails[members[i]].watts;
    }
    fill(filling, &jetson_descs[JETSON_POWER_TOTAL], NULL, watts);
}

static void fill_rails(struct filling *filling) {
    for (size_t i = 0; i < filling->line->n_rails; i++) {
        const struct tegrastats_rail *rail = &filling->line->rails[i];
        fill_named(filling, JETSON_RAIL_POWER, "rail", rail->name, rail->watts);
        if (jetson_rail_is_gpu(rail->name)) {
            fill(filling, &gpu_descs[GPU_POWER], filling->board->gpu, rail->watts);
        }
    }
    fill_total_power(filling);
}

static void fill_compat_cpus(struct filling *filling) {
    for (size_t i = 0; i < filling->line->n_cpus; i++) {
        char number[24];
        snprintf(number, sizeof(number), "%zu", i + 1);
        const struct labels *labels = label_pool_render(filling->pool, "cpu", number);
        if (labels != NULL) {
            fill(filling, &jetson_compat_descs[TEGRA_CPU_UTIL], labels,
                 filling->line->cpus[i].load_ratio * 100);
        }
    }
}

static void fill_compat(struct filling *filling) {
    const struct tegrastats_line *line = filling->line;
    if (!filling->board->detected) { /* else /proc/stat tells it */
        fill_compat_cpus(filling);
    }
    fill(filling, &jetson_compat_descs[TEGRA_MTS_FG], NULL, line->mts_foreground_ratio * 100);
    fill(filling, &jetson_compat_descs[TEGRA_MTS_BG], NULL, line->mts_background_ratio * 100);
    for (size_t i = 0; i < line->n_rails; i++) {
        const struct labels *labels =
            label_pool_render(filling->pool, "sensor", line->rails[i].name);
        if (labels != NULL) {
            fill(filling, &jetson_compat_descs[TEGRA_WATTAGE_AVERAGE], labels,
                 line->rails[i].average_watts * 1000);
        }
    }
}

void jetson_fill(const struct tegrastats_line *line, const struct jetson_board *board,
                 struct label_pool *pool, struct snapshot *out) {
    struct filling filling = {.line = line, .board = board, .pool = pool, .out = out};
    fill_plain(&filling);
    fill_gpu(&filling);
    fill_cpus(&filling);
    fill_engines(&filling);
    fill_zones(&filling);
    fill_rails(&filling);
    if (board->compat) {
        fill_compat(&filling);
    }
}
