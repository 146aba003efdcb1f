#include "collectors/jetson/part.h"

enum { EMC_N_PATHS = 3 };

/* By generation: TX2, Xavier and Orin; Nano and TX1; Thor. The first that can be read counts.
 * Without the clock, which root alone may read, the others mean nothing. */
static const struct {
    struct jetson_form form;
    const char *paths[EMC_N_PATHS];
} files[] = {
    {{JETSON_EMC_FREQUENCY, .kind = JETSON_CLOCK},
     {JETSON_DEBUGFS "bpmp/debug/clk/emc/rate", JETSON_DEBUGFS "clk/override.emc/clk_rate",
      "class/devfreq/bwmgr/cur_freq"}},
    {{JETSON_EMC_FREQUENCY_MAX, .when = JETSON_IF_ON},
     {JETSON_DEBUGFS "bpmp/debug/clk/emc/max_rate", JETSON_DEBUGFS "tegra_bwmgr/emc_max_rate",
      "class/devfreq/bwmgr/max_freq"}},
    {{JETSON_EMC_FREQUENCY_MIN, .when = JETSON_IF_ON},
     {JETSON_DEBUGFS "bpmp/debug/clk/emc/min_rate", JETSON_DEBUGFS "tegra_bwmgr/emc_min_rate",
      "class/devfreq/bwmgr/min_freq"}},
    {{JETSON_EMC_UTILIZATION, .kind = JETSON_ACTIVITY, .when = JETSON_IF_ON},
     {"kernel/actmon_avg_activity/mc_all", JETSON_DEBUGFS "cactmon/mc_all",
      JETSON_DEBUGFS "bpmp/debug/actmon/mc_all_avg_activity"}},
};

static void emc_open(void *state, const struct collector_env *env,
                     const struct jetson_board *board) {
    (void)board;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        const char *path = jetson_find_file(env->sysfs, files[i].paths, EMC_N_PATHS);
        if (path != NULL) {
            jetson_values_add(state, env->sysfs, path, files[i].form, NULL, NULL);
        }
    }
}

const struct jetson_part jetson_emc_part = {
    .state_size = sizeof(struct jetson_values),
    .open = emc_open,
    .collect = jetson_values_collect,
    .close = jetson_values_close,
};
