#include "collectors/jetson/jetson.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson/compat.h"
#include "collectors/jetson/part.h"
#include "collectors/jetson/tegrastats.h"
#include "collectors/nvml/metrics.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/settings/option.h"

#define PART(name) &jetson_##name##_part,

static const struct jetson_part *const parts[] = {JETSON_PARTS(PART)};

const struct metric_desc jetson_descs[JETSON_N_METRICS + 1] = {JETSON_METRICS(METRIC_LIST_DESC)};

/* What cards have, too. */
static const struct metric_desc *const shared_metrics[] = {
    &gpu_descs[CONTAINER_GPU_MEMORY],
    &gpu_descs[CONTAINER_GPU_UTILIZATION],
    &gpu_descs[GPU_BUSY_SECONDS],
    &gpu_descs[GPU_ENERGY_JOULES],
    &gpu_descs[GPU_FREQUENCY],
    &gpu_descs[GPU_FREQUENCY_MAX],
    &gpu_descs[GPU_INFO],
    &gpu_descs[GPU_MEMORY_TOTAL],
    &gpu_descs[GPU_MEMORY_USED],
    &gpu_descs[GPU_POWER],
    &gpu_descs[GPU_PROCESS_MEMORY],
    &gpu_descs[GPU_PROCESSES],
    &gpu_descs[GPU_PROTOTYPE_TOTAL],
    &gpu_descs[GPU_PROTOTYPE_USED],
    &gpu_descs[GPU_TEMPERATURE],
    &gpu_descs[GPU_UTILIZATION_PEAK],
    &gpu_descs[GPU_UTILIZATION],
    &nvml_descs[NVML_NVIDIA_IMPOSSIBLE_READINGS],
    &nvml_descs[NVML_NVIDIA_NVML_RETURN_CODE],
    NULL,
};

static const struct metric_desc *const tables[] = {jetson_compat_descs, jetson_descs, NULL};

struct jetson {
    struct jetson_board board;
    void *states[ARRAY_LEN(parts)]; /* NULL: not open */
    struct labels *sysfs;           /* source="sysfs" */
    struct energy_meter *meter;     /* or NULL */
    struct buf scratch;
};

static const char *const compat_choices[] = {"off", "tegra", "prototype", NULL}; /* COMPAT_… */

static const struct option jetson_options[] = {
    {
        .name = "collector.jetson.compat",
        .type = OPTION_CHOICE,
        .repeatable = true,
        .default_text = "off",
        .choices = compat_choices,
        .help = "Also give the values the names of jetson-exporter (tegra: tegra_*) or, on every "
                "machine, of the live prototype (prototype: RAMUsage, GPUMemoryUsage, ...)",
    },
    {
        .name = "collector.jetson.nvml",
        .type = OPTION_STRING,
        .default_text = "auto",
        .help = "NVIDIA's library, which Thor needs: auto, off, or the path of libnvidia-ml.so.1",
    },
    {
        .name = "collector.jetson.processes",
        .type = OPTION_BOOL,
        .help = "Show the GPU memory of each process",
    },
    {
        .name = "collector.jetson.tegrastats",
        .type = OPTION_STRING,
        .default_text = "auto",
        .help = "Program for values that no file has: auto, off, or the path of tegrastats",
    },
    {0},
};

static void jetson_close(void *state) {
    struct jetson *jetson = state;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (jetson->states[i] != NULL) {
            parts[i]->close(jetson->states[i]);
        }
        free(jetson->states[i]);
    }
    labels_destroy(jetson->sysfs);
    energy_meter_close(jetson->meter);
    jetson_board_finish(&jetson->board);
    buf_finish(&jetson->scratch);
    free(jetson);
}

static int jetson_open(const struct collector_env *env, void **ret_state, struct error *err) {
    struct jetson *jetson = mem_zalloc(1, sizeof(*jetson));
    int r = jetson_board_init(&jetson->board, env, err);
    bool anywhere =
        jetson_tegrastats_named(env->settings) || (jetson->board.compat & COMPAT_PROTOTYPE) != 0;
    if (r < 0 && (r != -ENODEV || !anywhere)) {
        jetson_close(jetson);
        return r;
    }
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (jetson->board.detected || parts[i]->anywhere) {
            jetson->states[i] = mem_zalloc(1, parts[i]->state_size);
            parts[i]->open(jetson->states[i], env, &jetson->board);
        }
    }
    jetson->sysfs = labels_render("source", "sysfs");
    jetson->meter = jetson->board.detected ? energy_meter_open(env->energy, "jetson") : NULL;
    *ret_state = jetson;
    return 0;
}

static struct jetson_round sample_parts(struct jetson *jetson, int64_t now_ns) {
    struct jetson_round round = {
        .board = &jetson->board,
        .now_ns = now_ns,
        .scratch = &jetson->scratch,
        .gpu_rail_watts = NAN,
        .energy = {.joules = NAN, .gpu_joules = NAN, .gpu_busy_seconds = NAN},
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (jetson->states[i] != NULL && parts[i]->sample != NULL) {
            parts[i]->sample(jetson->states[i], &round);
        }
    }
    if (!isnan(round.energy.joules)) {
        energy_meter_put(jetson->meter, &round.energy, round.gpu_shares, round.n_gpu_shares);
    }
    return round;
}

void jetson_sample_at(void *state, int64_t now_ns) {
    sample_parts(state, now_ns);
}

/* Collects all parts; the first failure is reported. */
int jetson_collect_at(void *state, int64_t now_ns, struct snapshot *out, struct error *err) {
    struct jetson *jetson = state;
    struct jetson_board *board = &jetson->board;
    struct jetson_round round = sample_parts(jetson, now_ns);
    if (round.gpu_uuid != NULL && strcmp(round.gpu_uuid, board->gpu_uuid) != 0) {
        jetson_board_name_gpu(board, round.gpu_uuid);
    }
    if (board->detected) {
        snapshot_add(out, &jetson_descs[JETSON_INFO], board->info, 1);
        snapshot_add(out, &jetson_descs[JETSON_SOURCE_UP], jetson->sysfs, 1);
    }
    int result = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (jetson->states[i] != NULL) {
            int r = parts[i]->collect(jetson->states[i], &round, out, result == 0 ? err : NULL);
            result = result == 0 ? r : result;
        }
    }
    return result;
}

static int jetson_sample(void *state) {
    jetson_sample_at(state, clock_monotonic_ns());
    return 0;
}

static int jetson_collect(void *state, struct snapshot *out, struct error *err) {
    return jetson_collect_at(state, clock_monotonic_ns(), out, err);
}

const struct collector jetson_collector = {
    .name = "jetson",
    .help = "NVIDIA Jetson: GPU, supply rails, temperatures, clocks, engines, fans, memory",
    .metrics = shared_metrics,
    .tables = tables,
    .options = jetson_options,
    .on_by_default = true,
    .open = jetson_open,
    .sample = jetson_sample,
    .collect = jetson_collect,
    .close = jetson_close,
};
