#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "collectors/jetson/part.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

enum emc_file { EMC_RATE, EMC_MAX, EMC_MIN, EMC_ACTIVITY, EMC_N_FILES };
enum { EMC_N_PATHS = 3 };

/* By generation: TX2, Xavier and Orin; Nano and TX1; Thor. The first that can be read counts. */
static const char *const emc_paths[EMC_N_FILES][EMC_N_PATHS] = {
    [EMC_RATE] = {JETSON_DEBUGFS "bpmp/debug/clk/emc/rate",
                  JETSON_DEBUGFS "clk/override.emc/clk_rate", "class/devfreq/bwmgr/cur_freq"},
    [EMC_MAX] = {JETSON_DEBUGFS "bpmp/debug/clk/emc/max_rate",
                 JETSON_DEBUGFS "tegra_bwmgr/emc_max_rate", "class/devfreq/bwmgr/max_freq"},
    [EMC_MIN] = {JETSON_DEBUGFS "bpmp/debug/clk/emc/min_rate",
                 JETSON_DEBUGFS "tegra_bwmgr/emc_min_rate", "class/devfreq/bwmgr/min_freq"},
    [EMC_ACTIVITY] = {"kernel/actmon_avg_activity/mc_all", JETSON_DEBUGFS "cactmon/mc_all",
                      JETSON_DEBUGFS "bpmp/debug/actmon/mc_all_avg_activity"},
};

struct emc {
    struct source_file files[EMC_N_FILES];
};

/* The activity divided by the clock's kilohertz is a percentage. Without the clock it means
 * nothing: a load of zero would be a lie. */
static int add_load(struct emc *emc, double hertz, struct snapshot *out, struct error *err) {
    double activity;
    int r = source_file_number(&emc->files[EMC_ACTIVITY], &activity, err);
    if (r > 0 && hertz > 0 && activity >= 0) {
        double percent = activity / (hertz / 1000);
        snapshot_add(out, &jetson_descs[JETSON_EMC_UTILIZATION], NULL, fmin(percent / 100, 1));
    }
    return r < 0 ? r : 0;
}

static int emc_collect(void *state, struct jetson_round *round, struct snapshot *out,
                       struct error *err) {
    (void)round;
    struct emc *emc = state;
    double hertz;
    int r = source_file_number(&emc->files[EMC_RATE], &hertz, err);
    if (r <= 0) {
        return r;
    }
    snapshot_add(out, &jetson_descs[JETSON_EMC_FREQUENCY], NULL, hertz);
    r = add_load(emc, hertz, out, err);
    int max = jetson_add_number(&emc->files[EMC_MAX], 1, &jetson_descs[JETSON_EMC_FREQUENCY_MAX],
                                NULL, out, r == 0 ? err : NULL);
    int min = jetson_add_number(&emc->files[EMC_MIN], 1, &jetson_descs[JETSON_EMC_FREQUENCY_MIN],
                                NULL, out, r == 0 && max == 0 ? err : NULL);
    return r < 0 ? r : max < 0 ? max : min;
}

static void emc_close(void *state) {
    struct emc *emc = state;
    for (size_t i = 0; i < EMC_N_FILES; i++) {
        source_file_finish(&emc->files[i]);
    }
    free(emc);
}

static void *emc_open(const struct collector_env *env, const struct jetson_board *board) {
    (void)board;
    struct emc *emc = mem_zalloc(1, sizeof(*emc));
    for (size_t i = 0; i < EMC_N_FILES; i++) {
        jetson_find_file(&emc->files[i], env->sysfs, emc_paths[i], EMC_N_PATHS);
    }
    return emc;
}

const struct jetson_part jetson_emc_part = {
    .name = "emc",
    .open = emc_open,
    .collect = emc_collect,
    .close = emc_close,
};
