#include <math.h>
#include <stdlib.h>

#include "collectors/jetson/pace.h"
#include "collectors/jetson/part.h"
#include "collectors/source/follow.h"
#include "collectors/source/tegra.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

enum { AUTOSUSPEND_MS = 500 }; /* nvgpu's own */

enum gpu_file {
    GPU_LOAD, /* tenths of a percent */
    GPU_RUNTIME_STATUS,
    GPU_CUR_FREQ, /* hertz */
    GPU_MAX_FREQ,
    GPU_MIN_FREQ,
    GPU_N_FILES,
};

static const struct {
    bool devfreq; /* in that directory, not in the device's */
    const char *name;
} gpu_files[GPU_N_FILES] = {
    [GPU_LOAD] = {false, "load"},        [GPU_RUNTIME_STATUS] = {false, "power/runtime_status"},
    [GPU_CUR_FREQ] = {true, "cur_freq"}, [GPU_MAX_FREQ] = {true, "max_freq"},
    [GPU_MIN_FREQ] = {true, "min_freq"},
};

/* Clocks as the hardware measures them, per cluster, by generation. */
enum { GPU_N_CLUSTERS = 2, GPU_N_CLOCKS = 3 };
static const char *const gpc_names[GPU_N_CLUSTERS] = {"0", "1"};
static const char *const gpc_clocks[GPU_N_CLUSTERS][GPU_N_CLOCKS] = {
    {
        JETSON_DEBUGFS "bpmp/debug/clk/nafll_gpc0/pto_counter", /* Orin */
        JETSON_DEBUGFS "bpmp/debug/clk/gpcclk/rate",            /* TX2, Xavier */
        JETSON_DEBUGFS "clk/gpcclk/clk_rate",                   /* Nano, TX1 */
    },
    {JETSON_DEBUGFS "bpmp/debug/clk/nafll_gpc1/pto_counter"},
};

struct gpu {
    const char *sysfs;
    bool found;
    struct source_file files[GPU_N_FILES];
    struct jetson_values clocks;

    struct jetson_pace pace;
    struct follow load; /* 0 to 1 */
};

static double autosuspend_ms(const char *device) {
    double value;
    struct source_file file;
    source_file_init(&file, device, "power/autosuspend_delay_ms", NULL);
    int r = source_file_number(&file, &value, NULL);
    source_file_finish(&file);
    return r > 0 ? value : AUTOSUSPEND_MS;
}

/* The driver may come after us; until it is there, every collection looks again. */
static void find(struct gpu *gpu) {
    struct jetson_gpu_paths paths CLEANUP_JETSON_GPU_PATHS = {0};
    if (jetson_gpu_find(gpu->sysfs, &paths, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < GPU_N_FILES; i++) {
        const char *dir = gpu_files[i].devfreq ? paths.devfreq : paths.device;
        if (dir != NULL) {
            source_file_init(&gpu->files[i], dir, gpu_files[i].name, NULL);
        }
    }
    if (paths.device != NULL) {
        jetson_pace_init(&gpu->pace, autosuspend_ms(paths.device));
    }
    gpu->found = true;
}

static enum jetson_power read_power(struct gpu *gpu, struct buf *scratch) {
    struct source_file *file = &gpu->files[GPU_RUNTIME_STATUS];
    if (file->path == NULL || source_file_read(file, scratch, NULL) < 0) {
        return JETSON_POWER_UNKNOWN;
    }
    return jetson_power_parse(buf_str(scratch));
}

/* The load from 0 to 1, or NAN. */
static double read_load(struct gpu *gpu, const struct jetson_round *round) {
    double permille;
    if (source_file_number(&gpu->files[GPU_LOAD], &permille, NULL) <= 0 || permille < 0) {
        return NAN;
    }
    jetson_pace_note(&gpu->pace, round->now_ns, permille, round->gpu_rail_watts);
    return fmin(permille, 1000) / 1000;
}

static void gpu_sample(void *state, struct jetson_round *round) {
    struct gpu *gpu = state;
    if (gpu->files[GPU_LOAD].path == NULL) {
        return;
    }
    enum jetson_power power = jetson_pace_idle(&gpu->pace, round->now_ns)
                                  ? read_power(gpu, round->scratch)
                                  : JETSON_POWER_UNKNOWN;
    bool due = jetson_pace_due(&gpu->pace, round->now_ns, power, round->gpu_rail_watts);
    double load = due ? read_load(gpu, round) : 0;
    follow_add(&gpu->load, round->now_ns, round->now_ns, load, round->board->max_gap_ns);
    if (!isnan(load)) {
        round->energy.gpu_busy_seconds = gpu->load.integral.total;
    }
}

static int gpu_collect(void *state, struct jetson_round *round, struct snapshot *out,
                       struct error *err) {
    static const struct {
        enum gpu_file file;
        const struct metric_desc *desc;
    } frequencies[] = {
        {GPU_CUR_FREQ, &gpu_descs[GPU_FREQUENCY]},
        {GPU_MAX_FREQ, &gpu_descs[GPU_FREQUENCY_MAX]},
        {GPU_MIN_FREQ, &jetson_descs[JETSON_GPU_FREQUENCY_MIN]},
    };
    static const struct follow_metrics load_metrics = {&gpu_descs[GPU_UTILIZATION],
                                                       &gpu_descs[GPU_BUSY_SECONDS],
                                                       &gpu_descs[GPU_UTILIZATION_PEAK]};
    struct gpu *gpu = state;
    if (!gpu->found) {
        find(gpu);
    }
    if (!gpu->found) {
        return 0;
    }
    int result = 0;
    snapshot_add(out, &gpu_descs[GPU_INFO], round->board->gpu_info, 1);
    follow_emit(&gpu->load, &load_metrics, round->now_ns, round->board->gpu, out);
    for (size_t i = 0; i < ARRAY_LEN(frequencies); i++) {
        int r = jetson_add_number(&gpu->files[frequencies[i].file], 1, frequencies[i].desc,
                                  round->board->gpu, out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    int r = jetson_values_collect(&gpu->clocks, round, out, result == 0 ? err : NULL);
    return result == 0 ? r : result;
}

static void gpu_close(void *state) {
    struct gpu *gpu = state;
    for (size_t i = 0; i < GPU_N_FILES; i++) {
        source_file_finish(&gpu->files[i]);
    }
    jetson_values_close(&gpu->clocks);
}

static void gpu_open(void *state, const struct collector_env *env,
                     const struct jetson_board *board) {
    struct gpu *gpu = state;
    follow_init(&gpu->load, board->peak_window_ns);
    gpu->sysfs = env->sysfs;
    for (size_t i = 0; i < GPU_N_CLUSTERS; i++) {
        const char *clock = jetson_find_file(env->sysfs, gpc_clocks[i], GPU_N_CLOCKS);
        if (clock != NULL) {
            const struct jetson_form form = {JETSON_GPC_FREQUENCY};
            jetson_values_add(&gpu->clocks, env->sysfs, clock, form, "gpc", gpc_names[i]);
        }
    }
    find(gpu);
}

const struct jetson_part jetson_gpu_part = {
    .state_size = sizeof(struct gpu),
    .open = gpu_open,
    .sample = gpu_sample,
    .collect = gpu_collect,
    .close = gpu_close,
};
