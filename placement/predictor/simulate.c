#include "placement/predictor/simulate.h"

#include <math.h>
#include <stdio.h>

#include "exporter/settings/flags.h"
#include "placement/predictor/predictor.h"

/* Counts as published with the original service, multiplications as published with the models. */
static const struct model {
    const char *name;
    unsigned conv_layers, filters, fc_layers, pool_layers;
    uint64_t parameters;
    double giga_macs;
    unsigned output_bytes;
} models[] = {
    {"alexnet", 5, 1376, 3, 3, 60965228, 0.65, 22000},
    {"convnext", 40, 19968, 73, 1, 88591464, 15.4, 22000},
    {"deeplab", 149, 102686, 1, 1, 41402464, 160, 270400},
    {"densenet", 120, 11240, 1, 4, 8146152, 2.9, 22000},
    {"efficientnet", 56, 56184, 1, 2, 12966034, 1.3, 22000},
    {"googlenet", 59, 7280, 1, 15, 6998555, 1.5, 22000},
    {"mobilenet", 53, 18088, 1, 2, 3539138, 0.3, 22000},
    {"nasnet", 488, 180396, 1, 57, 88655162, 23.8, 22000},
    {"regnet", 74, 81008, 1, 1, 107730552, 31.7, 22000},
    {"resnet", 152, 75712, 1, 1, 60404072, 11.5, 22000},
    {"vgg", 13, 4224, 3, 5, 138357544, 15.5, 22000},
};

static const struct kind {
    const char *name;
    double start_seconds;
    double read_bytes_per_second;
    double giga_macs_per_second;
    double blocked; /* the share of it that other work can take away */
} kinds[] = {
    {"raspberrypi", 0.15, 60e6, 4, 0.8},
    {"jetson", 0.9, 150e6, 30, 0.35},
    {"desktop", 0.1, 600e6, 60, 0.8},
};

/* Of the splitmix kind: one state of 64 bits, the same everywhere. */
static double uniform(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Nearly normal, mean 0 and deviation 1: the sum of twelve, as libraries round differently. */
static double normal(uint64_t *state) {
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += uniform(state);
    }
    return sum;
}

static double run_seconds(const struct model *model, const struct kind *kind, double fitness,
                          double load, uint64_t *state) {
    double reading = (double)model->parameters * 4 / kind->read_bytes_per_second;
    double computing = model->giga_macs / (kind->giga_macs_per_second * fitness);
    double noise = 1 + 0.06 * normal(state);
    return (kind->start_seconds + reading + computing / (1 - kind->blocked * load)) *
           fmax(noise, 0.7);
}

static void add_run(struct buf *out, const struct model *model, const struct kind *kind,
                    unsigned number, double fitness, uint64_t *state) {
    double load = uniform(state);
    unsigned input_bytes = 40000 + (unsigned)(uniform(state) * 760000);
    double disk = 10 + 80 * uniform(state);
    const struct run run = {
        .model = model->name,
        .device = kind->name,
        .conv_layers = model->conv_layers,
        .filters = model->filters,
        .fc_layers = model->fc_layers,
        .pool_layers = model->pool_layers,
        .parameters = model->parameters,
        .read_bytes = input_bytes,
        .write_bytes = model->output_bytes,
        .disk_percent = disk,
        .load_percent = 100 * load,
        .seconds = run_seconds(model, kind, fitness, load, state),
        .number = number,
    };
    run_write(&run, out);
}

void simulate_write(uint64_t seed, unsigned n_runs, struct buf *out) {
    uint64_t state = seed;
    buf_add_str(out, run_header);
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        double fitness = 0.6 + uniform(&state);
        for (size_t j = 0; j < ARRAY_LEN(kinds); j++) {
            for (unsigned run = 1; run <= n_runs; run++) {
                add_run(out, &models[i], &kinds[j], run, fitness, &state);
            }
        }
    }
}

static const char usage[] =
    "usage: waap place simulate [flags]\n\n"
    "Prints made-up runs of well-known models on three kinds of device, as CSV for\n"
    "waap place train.\n\n";

static const struct option options[] = {
    {"runs", OPTION_INT, .default_text = "100", .max = 100000,
     .help = "How many of each model on each kind of device"},
    {"seed", OPTION_INT, .default_text = "42", .max = INT64_MAX,
     .help = "The same seed gives the same runs"},
    {0},
};

int simulate_main(int argc, char **argv) {
    struct flags flags CLEANUP_FLAGS;
    int code = flags_begin(&flags, usage, options, argc, argv);
    if (code >= 0) {
        return code;
    }
    if (flags.n_words > 0) {
        fprintf(stderr, "waap place simulate: %s: unexpected argument\n", flags.words[0]);
        return 2;
    }
    struct buf out CLEANUP_BUF = {0};
    simulate_write((uint64_t)settings_int(flags.settings, "seed"),
                   (unsigned)settings_int(flags.settings, "runs"), &out);
    if (fputs(buf_str(&out), stdout) == EOF || fflush(stdout) == EOF) {
        perror("waap place simulate: standard output");
        return 1;
    }
    return 0;
}
