#include <stdio.h>
#include <stdlib.h>

#include "collectors/nvml/nvml.h"
#include "exporter/core/cleanup.h"
#include "exporter/metrics/exposition.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"
#include "tests/bench/stopwatch.h"

/* CPU time of one scrape of eight fake GPUs, collecting and rendering, and of one sample of them.
 * Usage: FAKE_NVML=SCENARIO bench_nvml LIBRARY */

enum { N_ROUNDS = 500, N_TURNS = 5 };

static struct settings *make_settings(const char *library) {
    static const char *const compat[] = {"off", NULL};
    static const struct option shared[] = {
        {.name = "collector.jetson.compat",
         .type = OPTION_CHOICE,
         .repeatable = true,
         .choices = compat,
         .default_text = "off"},
        {.name = "collector.reprobe-interval", .type = OPTION_DURATION, .default_text = "60s"},
        {.name = "sample.hz", .type = OPTION_INT, .default_text = "10"},
        {.name = "sample.peak-window", .type = OPTION_DURATION, .default_text = "60s"},
    };
    static const struct option *options[16];
    size_t n = 0;
    for (const struct option *option = nvml_collector.options; option->name != NULL; option++) {
        options[n++] = option;
    }
    for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
        options[n++] = &shared[i];
    }
    struct settings *settings = settings_create(options, n);
    settings_set(settings, settings_option(settings, "collector.nvml.library"), 1, library, NULL);
    return settings;
}

static void *open_nvml(const struct settings *settings) {
    static struct collector_env env;
    env = (struct collector_env){.procfs = "/proc", .sysfs = "/sys", .settings = settings};
    struct error err;
    void *state = NULL;
    if (nvml_collector.open(&env, &state, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return state;
}

static void scrape(void *nvml, struct snapshot *snapshot, struct exposition_renderer *renderer) {
    uint64_t duplicates = 0;
    snapshot_reset(snapshot);
    nvml_collector.collect(nvml, snapshot, NULL);
    exposition_part_unref(exposition_render(renderer, snapshot, &duplicates));
}

static void keep_least(double *least, double begin, double end, int n_rounds) {
    double each = (end - begin) / n_rounds;
    *least = each < *least ? each : *least;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
        return 2;
    }
    struct settings *settings CLEANUP_SETTINGS = make_settings(argv[1]);
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    struct exposition_renderer renderer = {0};
    void *nvml = open_nvml(settings);
    const int n_rounds = stopwatch_count(N_ROUNDS);
    double best_scrape = 1, best_sample = 1;
    for (int turn = 0; turn < stopwatch_count(N_TURNS); turn++) {
        double begin = stopwatch_cpu_seconds();
        for (int i = 0; i < n_rounds; i++) {
            scrape(nvml, &snapshot, &renderer);
        }
        double middle = stopwatch_cpu_seconds();
        for (int i = 0; i < n_rounds; i++) {
            nvml_collector.sample(nvml);
        }
        keep_least(&best_scrape, begin, middle, n_rounds);
        keep_least(&best_sample, middle, stopwatch_cpu_seconds(), n_rounds);
    }
    printf("nvml: scrape of 8 GPUs\t%.9f\n", best_scrape);
    printf("nvml: sample of 8 GPUs\t%.9f\n", best_sample);
    nvml_collector.close(nvml);
    exposition_renderer_finish(&renderer);
    return 0;
}
