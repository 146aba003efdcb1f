#include "collectors/jetson/tegrastats.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/jetson/compat.h"
#include "collectors/jetson/part.h"
#include "collectors/jetson/rail.h"
#include "collectors/source/label_pool.h"
#include "collectors/source/tegrastats.h"
#include "collectors/source/tegrastats_line.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"
#include "exporter/settings/settings.h"

/* ---- what a line adds to a snapshot ---- */

struct filling {
    const struct tegrastats_line *line;
    const struct jetson_board *board;
    struct label_pool *pool;
    struct snapshot *out;
};

static bool snapshot_has(const struct snapshot *snapshot, const struct metric_desc *desc,
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
    if (!isnan(value) && !snapshot_has(filling->out, desc, labels)) {
        snapshot_add(filling->out, desc, labels, value);
    }
}

static void fill_named(struct filling *filling, const struct metric_desc *desc, const char *label,
                       const char *name, double value) {
    if (!isnan(value)) {
        fill(filling, desc, label_pool_render(filling->pool, label, name), value);
    }
}

static void fill_numbered(struct filling *filling, const struct metric_desc *desc,
                          const char *label, size_t number, double value) {
    char text[24];
    snprintf(text, sizeof(text), "%zu", number);
    fill_named(filling, desc, label, text, value);
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
        fill_numbered(filling, &jetson_descs[JETSON_GPC_FREQUENCY], "gpc", i,
                      line->gpc_frequency_hertz[i]);
    }
}

static void fill_cpus(struct filling *filling) {
    for (size_t i = 0; i < filling->line->n_cpus; i++) {
        const struct tegrastats_cpu *cpu = &filling->line->cpus[i];
        fill_numbered(filling, &jetson_descs[JETSON_CPU_ONLINE], "cpu", i, cpu->online);
        fill_numbered(filling, &jetson_descs[JETSON_CPU_FREQUENCY], "cpu", i, cpu->frequency_hertz);
    }
}

/* If the files have the state of an engine, they have its clock as well; its load is often known to
 * tegrastats only. */
static void fill_engines(struct filling *filling) {
    for (size_t i = 0; i < filling->line->n_engines; i++) {
        const struct tegrastats_engine *engine = &filling->line->engines[i];
        const struct labels *labels = label_pool_render(filling->pool, "engine", engine->name);
        if (!snapshot_has(filling->out, &jetson_descs[JETSON_ENGINE_ACTIVE], labels)) {
            fill(filling, &jetson_descs[JETSON_ENGINE_ACTIVE], labels, engine->active);
            fill(filling, &jetson_descs[JETSON_ENGINE_FREQUENCY], labels, engine->frequency_hertz);
        }
        fill(filling, &jetson_descs[JETSON_ENGINE_UTILIZATION], labels, engine->load_ratio);
    }
}

static void fill_zones(struct filling *filling) {
    for (size_t i = 0; i < filling->line->n_zones; i++) {
        const struct tegrastats_zone *zone = &filling->line->zones[i];
        fill_named(filling, &jetson_descs[JETSON_TEMPERATURE], "zone", zone->name, zone->celsius);
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
        fill_named(filling, &jetson_descs[JETSON_RAIL_POWER], "rail", rail->name, rail->watts);
        if (jetson_rail_is_gpu(rail->name)) {
            fill(filling, &gpu_descs[GPU_POWER], filling->board->gpu, rail->watts);
        }
    }
    fill_total_power(filling);
}

static void fill_compat(struct filling *filling) {
    const struct tegrastats_line *line = filling->line;
    fill(filling, &jetson_compat_descs[TEGRA_MTS_FG], NULL, line->mts_foreground_ratio * 100);
    fill(filling, &jetson_compat_descs[TEGRA_MTS_BG], NULL, line->mts_background_ratio * 100);
    for (size_t i = 0; i < line->n_rails; i++) {
        fill_named(filling, &jetson_compat_descs[TEGRA_WATTAGE_AVERAGE], "sensor",
                   line->rails[i].name, line->rails[i].average_watts * 1000);
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
    if ((board->compat & COMPAT_TEGRA) != 0) {
        fill_compat(&filling);
    }
}

/* ---- the program ---- */

enum { TEGRASTATS_INTERVAL_MS = 1000 };

struct source {
    char *path;                 /* NULL: off, or to be found */
    bool named;                 /* the user gave the path */
    bool decided;               /* whether it is worth running is known */
    struct tegrastats *program; /* NULL: not in use */
    int code;                   /* the latest failure */
    struct error error;
    struct labels *label; /* source="tegrastats" */
    struct label_pool pool;
};

static const char *setting(const struct settings *settings) {
    return settings_string(settings, "collector.jetson.tegrastats");
}

bool jetson_tegrastats_named(const struct settings *settings) {
    return strcmp(setting(settings), "off") != 0 && strcmp(setting(settings), "auto") != 0;
}

static void tegrastats_part_open(void *state, const struct collector_env *env,
                                 const struct jetson_board *board) {
    struct source *source = state;
    source->named = jetson_tegrastats_named(env->settings);
    source->decided =
        strcmp(setting(env->settings), "off") == 0 || (!source->named && !board->detected);
    source->path = source->named ? mem_strdup(setting(env->settings)) : NULL;
    source->label = labels_render("source", "tegrastats");
}

static void tegrastats_part_close(void *state) {
    struct source *source = state;
    tegrastats_close(source->program);
    label_pool_finish(&source->pool);
    labels_destroy(source->label);
    free(source->path);
}

static void tegrastats_part_sample(void *state, struct jetson_round *round) {
    struct source *source = state;
    if (source->program == NULL) {
        return;
    }
    struct error error;
    int r = tegrastats_poll(source->program, round->now_ns, &error);
    if (r < 0) {
        source->code = r;
        source->error = error;
    } else if (tegrastats_latest(source->program, round->now_ns) != NULL) {
        source->code = 0;
    }
}

static bool has(const struct snapshot *out, const struct metric_desc *desc) {
    return snapshot_has(out, desc, NULL);
}

/* It runs with our rights and reads the same files: without root it has no more than we have. */
static bool can_add(const struct jetson_board *board, const struct snapshot *out) {
    if (!has(out, &gpu_descs[GPU_UTILIZATION]) || !has(out, &jetson_descs[JETSON_RAIL_POWER])) {
        return true;
    }
    bool knows_engines = board->soc != NULL && board->soc->engine_loads;
    return geteuid() == 0 && (knows_engines || !has(out, &jetson_descs[JETSON_EMC_UTILIZATION]));
}

/* Searched for once; a program that the user named may be installed later. */
static void decide(struct source *source, const struct jetson_board *board,
                   const struct snapshot *out) {
    source->decided = true;
    if (!source->named && can_add(board, out)) {
        source->path = tegrastats_find(tegrastats_directories);
    }
    if (source->path != NULL) {
        source->code =
            tegrastats_open(source->path, TEGRASTATS_INTERVAL_MS, &source->program, &source->error);
    }
}

static void add_state(const struct source *source, int64_t now_ns, bool up, struct snapshot *out) {
    struct tegrastats_stats stats = tegrastats_stats(source->program);
    double age = tegrastats_age_seconds(source->program, now_ns);
    snapshot_add(out, &jetson_descs[JETSON_SOURCE_UP], source->label, up);
    if (!isnan(age)) {
        snapshot_add(out, &jetson_descs[JETSON_SOURCE_AGE], source->label, age);
    }
    snapshot_add(out, &jetson_descs[JETSON_TEGRASTATS_RESTARTS], NULL, (double)stats.n_restarts);
    snapshot_add(out, &jetson_descs[JETSON_TEGRASTATS_PARSE_ERRORS], NULL,
                 (double)stats.n_parse_errors);
    snapshot_add(out, &jetson_descs[JETSON_TEGRASTATS_UNKNOWN_TOKENS], NULL,
                 (double)stats.n_unknown_tokens);
}

static int tegrastats_part_collect(void *state, struct jetson_round *round, struct snapshot *out,
                                   struct error *err) {
    struct source *source = state;
    label_pool_clear(&source->pool);
    if (source->program == NULL && (!source->decided || source->named)) {
        decide(source, round->board, out);
        tegrastats_part_sample(source, round);
    }
    const struct tegrastats_line *line =
        source->program != NULL ? tegrastats_latest(source->program, round->now_ns) : NULL;
    if (source->program != NULL) {
        add_state(source, round->now_ns, line != NULL, out);
    }
    if (line != NULL) {
        jetson_fill(line, round->board, &source->pool, out);
    } else if (source->named && source->code < 0) {
        return error_set(err, source->code, "%s", source->error.text);
    }
    return 0;
}

const struct jetson_part jetson_tegrastats_part = {
    .anywhere = true,
    .state_size = sizeof(struct source),
    .open = tegrastats_part_open,
    .sample = tegrastats_part_sample,
    .collect = tegrastats_part_collect,
    .close = tegrastats_part_close,
};
