#include "tests/fakes/collectors_fake.h"

#include <stdio.h>

/* As many series as one likes, with three labels each. */

static const struct metric_desc requests = {
    .name = "bench_requests_total",
    .help = "Whole numbers that rise with every collection, or stay as they are.",
    .type = METRIC_COUNTER,
};
static const struct metric_desc level = {
    .name = "bench_level_ratio",
    .help = "Fractions that change with every collection.",
    .type = METRIC_GAUGE,
    .unit = "ratio",
};
static const struct metric_desc *const metrics[] = {&requests, &level, NULL};

enum value { VALUE_WHOLE, VALUE_FRACTION, VALUE_CONSTANT };
static const char *const values[] = {"whole", "fraction", "constant", NULL}; /* enum value */

static const struct option options[] = {
    {
        .name = "collector.bench.series",
        .type = OPTION_INT,
        .default_text = "1000",
        .min = 0,
        .max = 10000000,
        .help = "How many series",
    },
    {
        .name = "collector.bench.value",
        .type = OPTION_CHOICE,
        .default_text = "whole",
        .choices = values,
        .help = "What their values are",
    },
    {.name = NULL},
};

struct bench {
    enum value value;
    size_t n_collections;
    size_t n_series;
    struct labels *series[];
};

static void bench_close(void *state) {
    struct bench *bench = state;
    for (size_t i = 0; i < bench->n_series; i++) {
        labels_destroy(bench->series[i]);
    }
    free(bench);
}

static int bench_open(const struct collector_env *env, void **ret_state, struct error *err) {
    size_t n = (size_t)settings_int(env->settings, "collector.bench.series");
    struct bench *bench = calloc(1, sizeof(*bench) + n * sizeof(bench->series[0]));
    if (bench == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    bench->value = (enum value)settings_choice(env->settings, "collector.bench.value");
    bench->n_series = n;
    for (size_t i = 0; i < n; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/api/v1/item/%06zu", i);
        bench->series[i] = labels_render("method", "GET", "path", path, "node", "edge-17");
        if (bench->series[i] == NULL) {
            bench_close(bench);
            return error_set(err, -ENOMEM, "out of memory");
        }
    }
    *ret_state = bench;
    return 0;
}

static int bench_collect(void *state, struct snapshot *out, struct error *err) {
    (void)err;
    struct bench *bench = state;
    size_t turn = bench->value == VALUE_CONSTANT ? 0 : bench->n_collections++;
    bool whole = bench->value != VALUE_FRACTION;
    const struct metric_desc *desc = whole ? &requests : &level;
    for (size_t i = 0; i < bench->n_series; i++) {
        double value = whole ? (double)(i + turn) : (double)((i * 7919 + turn) % 9973) / 9973;
        snapshot_add(out, desc, bench->series[i], value);
    }
    return 0;
}

const struct collector collector_bench = {
    .name = "bench",
    .help = "many series",
    .metrics = metrics,
    .options = options,
    .open = bench_open,
    .collect = bench_collect,
    .close = bench_close,
};
