#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "collectors/jetson/part.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

/* The clock that stands for each engine; it is called differently on different chips. */
enum { ENGINE_N_CLOCKS = 2 };
static const struct {
    const char *engine;
    const char *clocks[ENGINE_N_CLOCKS];
} engines[] = {
    {"ape", {"ape"}},
    {"cvnas", {"cvnas"}},
    {"nvdec0", {"nvdec", "nvdec0"}},
    {"nvdec1", {"nvdec1"}},
    {"nvdla0", {"dla0_core"}},
    {"nvdla1", {"dla1_core"}},
    {"nvenc0", {"nvenc", "msenc"}},
    {"nvenc1", {"nvenc1"}},
    {"nvjpg0", {"nvjpg", "nvjpg0"}},
    {"nvjpg1", {"nvjpg1"}},
    {"ofa", {"ofa"}},
    {"pva0", {"pva0_vps0", "pva0_vps"}},
    {"pva1", {"pva1_vps0", "pva1_vps"}},
    {"se", {"se"}},
    {"vic", {"vic", "vic03"}},
};

/* Where the kernel, or on newer chips the boot processor, shows its clocks. */
static const struct {
    const char *dir;
    const char *enabled;
    const char *rate;
} trees[] = {
    {JETSON_DEBUGFS "clk", "clk_enable_count", "clk_rate"},
    {JETSON_DEBUGFS "bpmp/debug/clk", "state", "rate"},
};

/* Per mille, of the only engine that has one. */
static const char *const vic_loads[] = {
    "devices/platform/13e40000.host1x/15340000.vic/load",
    JETSON_DEBUGFS "vic/actmon_avg_norm",
};

struct engine {
    struct labels *labels;
    struct source_file enabled;
    struct source_file rate;
    struct source_file load;
};

struct engines {
    struct engine rows[ARRAY_LEN(engines)];
};

static void find_clock(struct engine *engine, const char *sysfs, const char *clock) {
    for (size_t i = 0; i < ARRAY_LEN(trees) && engine->rate.path == NULL; i++) {
        char rate[96], enabled[96];
        snprintf(rate, sizeof(rate), "%s/%s/%s", trees[i].dir, clock, trees[i].rate);
        snprintf(enabled, sizeof(enabled), "%s/%s/%s", trees[i].dir, clock, trees[i].enabled);
        const char *const rates[] = {rate};
        jetson_find_file(&engine->rate, sysfs, rates, 1);
        if (engine->rate.path != NULL) {
            source_file_init(&engine->enabled, sysfs, enabled, NULL);
        }
    }
}

static void engine_init(struct engine *engine, size_t index, const char *sysfs) {
    engine->labels = labels_render("engine", engines[index].engine);
    for (size_t i = 0; i < ENGINE_N_CLOCKS && engine->rate.path == NULL; i++) {
        if (engines[index].clocks[i] != NULL) {
            find_clock(engine, sysfs, engines[index].clocks[i]);
        }
    }
}

/* The clock of a gated engine still has a rate: the one that it would get. */
static int add_engine(struct engine *engine, struct snapshot *out, struct error *err) {
    double enabled, permille;
    int r = source_file_number(&engine->enabled, &enabled, err);
    if (r > 0) {
        snapshot_add(out, &jetson_descs[JETSON_ENGINE_ACTIVE], engine->labels, enabled > 0);
    }
    if (r > 0 && enabled > 0) {
        r = jetson_add_number(&engine->rate, 1, &jetson_descs[JETSON_ENGINE_FREQUENCY],
                              engine->labels, out, err);
    }
    int load = source_file_number(&engine->load, &permille, r < 0 ? NULL : err);
    if (load > 0) {
        snapshot_add(out, &jetson_descs[JETSON_ENGINE_UTILIZATION], engine->labels,
                     fmin(permille / 1000, 1));
    }
    return r < 0 ? r : load < 0 ? load : 0;
}

static int engine_collect(void *state, struct jetson_round *round, struct snapshot *out,
                          struct error *err) {
    (void)round;
    struct engines *all = state;
    int result = 0;
    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        int r = add_engine(&all->rows[i], out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    return result;
}

static void engine_close(void *state) {
    struct engines *all = state;
    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        labels_destroy(all->rows[i].labels);
        source_file_finish(&all->rows[i].enabled);
        source_file_finish(&all->rows[i].rate);
        source_file_finish(&all->rows[i].load);
    }
    free(all);
}

static void *engine_open(const struct collector_env *env, const struct jetson_board *board) {
    (void)board;
    struct engines *all = mem_zalloc(1, sizeof(*all));
    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        engine_init(&all->rows[i], i, env->sysfs);
    }
    struct engine *vic = &all->rows[ARRAY_LEN(engines) - 1];
    jetson_find_file(&vic->load, env->sysfs, vic_loads, ARRAY_LEN(vic_loads));
    return all;
}

const struct jetson_part jetson_engine_part = {
    .name = "engine",
    .open = engine_open,
    .collect = engine_collect,
    .close = engine_close,
};
