#include <stdio.h>

#include "collectors/jetson/part.h"

/* The clock of each engine, which has different names on different chips. */
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

/* The clock of a gated engine still has a rate: the one that it would get. */
static bool add_clock(struct jetson_values *values, const char *sysfs, const char *clock,
                      const char *engine) {
    for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
        char rate[96], enabled[96];
        snprintf(rate, sizeof(rate), "%s/%s/%s", trees[i].dir, clock, trees[i].rate);
        snprintf(enabled, sizeof(enabled), "%s/%s/%s", trees[i].dir, clock, trees[i].enabled);
        if (source_file_exists(sysfs, rate)) {
            const struct jetson_form active = {JETSON_ENGINE_ACTIVE, .kind = JETSON_SWITCH};
            const struct jetson_form frequency = {JETSON_ENGINE_FREQUENCY, .when = JETSON_IF_ON};
            jetson_values_add(values, sysfs, enabled, active, "engine", engine);
            jetson_values_add(values, sysfs, rate, frequency, "engine", engine);
            return true;
        }
    }
    return false;
}

static void engine_open(void *state, const struct collector_env *env,
                        const struct jetson_board *board) {
    (void)board;
    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        bool found = false;
        for (size_t j = 0; j < ENGINE_N_CLOCKS && engines[i].clocks[j] != NULL && !found; j++) {
            found = add_clock(state, env->sysfs, engines[i].clocks[j], engines[i].engine);
        }
    }
    const char *load = jetson_find_file(env->sysfs, vic_loads, ARRAY_LEN(vic_loads));
    if (load != NULL) {
        const struct jetson_form form = {JETSON_ENGINE_UTILIZATION, -1000, JETSON_RATIO};
        jetson_values_add(state, env->sysfs, load, form, "engine", "vic");
    }
}

const struct jetson_part jetson_engine_part = {
    .state_size = sizeof(struct jetson_values),
    .open = engine_open,
    .collect = jetson_values_collect,
    .close = jetson_values_close,
};
