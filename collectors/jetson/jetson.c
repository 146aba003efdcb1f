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

/* Rails come before the GPU, which looks at what its rail says. */
static const struct jetson_part *const parts[] = {
    &jetson_rail_part,    &jetson_gpu_part,    &jetson_container_part, &jetson_cpu_part,
    &jetson_emc_part,     &jetson_engine_part, &jetson_fan_part,       &jetson_memory_part,
    &jetson_mode_part,    &jetson_nvml_part,   &jetson_process_part,   &jetson_throttle_part,
    &jetson_thermal_part,
};

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
    void *states[ARRAY_LEN(parts)];
    struct jetson_tegrastats *tegrastats;
    struct jetson_compat *compat; /* NULL: not wanted */
    struct labels *sysfs;         /* source="sysfs" */
    struct energy_meter *meter;   /* or NULL */
    struct buf scratch;
};

static const char *const compat_choices[] = {"off", "tegra", NULL};

static const struct option jetson_options[] = {
    {
        .name = "collector.jetson.compat",
        .type = OPTION_CHOICE,
        .default_text = "off",
        .choices = compat_choices,
        .help = "Also give the values the names that jetson-exporter used (tegra_*)",
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
    if (jetson == NULL) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(parts) && jetson->states[i] != NULL; i++) {
        parts[i]->close(jetson->states[i]);
    }
    jetson_tegrastats_destroy(jetson->tegrastats);
    jetson_compat_destroy(jetson->compat);
    labels_destroy(jetson->sysfs);
    energy_meter_close(jetson->meter);
    jetson_board_finish(&jetson->board);
    buf_finish(&jetson->scratch);
    free(jetson);
}

/* A program that the user names is a source, be this a Jetson or not. */
static int open_sources(struct jetson *jetson, const struct collector_env *env, struct error *err) {
    jetson->tegrastats = jetson_tegrastats_create(env);
    int r = jetson_board_init(&jetson->board, env, err);
    if (r < 0 && (r != -ENODEV || !jetson_tegrastats_named(jetson->tegrastats))) {
        return r;
    }
    for (size_t i = 0; i < ARRAY_LEN(parts) && jetson->board.detected; i++) {
        jetson->states[i] = parts[i]->open(env, &jetson->board);
    }
    jetson->compat = jetson->board.compat ? jetson_compat_create(env) : NULL;
    return 0;
}

static int jetson_open(const struct collector_env *env, void **ret_state, struct error *err) {
    struct jetson *jetson = mem_zalloc(1, sizeof(*jetson));
    jetson->sysfs = labels_render("source", "sysfs");
    int r = open_sources(jetson, env, err);
    if (r < 0) {
        jetson_close(jetson);
        return r;
    }
    jetson->meter = jetson->board.detected ? energy_meter_open(env->energy, "jetson") : NULL;
    *ret_state = jetson;
    return 0;
}

static void tell_energy(struct jetson *jetson, const struct jetson_round *round) {
    if (!isnan(round->energy.joules)) {
        energy_meter_put(jetson->meter, &round->energy, round->gpu_shares, round->n_gpu_shares);
    }
}

static struct jetson_round sample_parts(struct jetson *jetson, int64_t now_ns) {
    struct jetson_round round = {
        .board = &jetson->board,
        .now_ns = now_ns,
        .scratch = &jetson->scratch,
        .gpu_rail_watts = NAN,
        .energy = {.joules = NAN, .gpu_joules = NAN, .gpu_busy_seconds = NAN},
    };
    for (size_t i = 0; i < ARRAY_LEN(parts) && jetson->board.detected; i++) {
        if (parts[i]->sample != NULL) {
            parts[i]->sample(jetson->states[i], &round);
        }
    }
    tell_energy(jetson, &round);
    jetson_tegrastats_sample(jetson->tegrastats, now_ns);
    if (jetson->compat != NULL && jetson->board.detected) {
        jetson_compat_sample(jetson->compat, now_ns, &jetson->scratch);
    }
    return round;
}

void jetson_sample_at(void *state, int64_t now_ns) {
    sample_parts(state, now_ns);
}

/* Every part has its turn; the first failure is the one reported. */
static int collect_parts(struct jetson *jetson, struct jetson_round *round, struct snapshot *out,
                         struct error *err) {
    int result = 0;
    snapshot_add(out, &jetson_descs[JETSON_INFO], jetson->board.info, 1);
    snapshot_add(out, &jetson_descs[JETSON_SOURCE_UP], jetson->sysfs, 1);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        int r = parts[i]->collect(jetson->states[i], round, out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    return result;
}

/* The files come first; tegrastats adds what they lack, and other names repeat both. */
int jetson_collect_at(void *state, int64_t now_ns, struct snapshot *out, struct error *err) {
    struct jetson *jetson = state;
    struct jetson_round round = sample_parts(jetson, now_ns);
    if (round.gpu_uuid != NULL && strcmp(round.gpu_uuid, jetson->board.gpu_uuid) != 0) {
        jetson_board_name_gpu(&jetson->board, round.gpu_uuid);
    }
    int result = jetson->board.detected ? collect_parts(jetson, &round, out, err) : 0;
    int r = jetson_tegrastats_add(jetson->tegrastats, &jetson->board, now_ns, out,
                                  result == 0 ? err : NULL);
    result = result == 0 ? r : result;
    if (jetson->compat != NULL) {
        jetson_compat_add(jetson->compat, out);
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
