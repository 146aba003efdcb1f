#include "placement/predictor/simulate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "placement/predictor/predictor.h"

enum { DEFAULT_RUNS = 100, DEFAULT_SEED = 42, MAX_RUNS = 100000 };

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
    buf_printf(out, "%u,%s,%.1f,%.1f,%u,%u,%u,%.6f,%u,%u,%s,%u,%" PRIu64 "\n", model->conv_layers,
               kind->name, disk, 100 * load, input_bytes, model->output_bytes, number,
               run_seconds(model, kind, fitness, load, state), model->filters, model->fc_layers,
               model->name, model->pool_layers, model->parameters);
}

void simulate_write(uint64_t seed, unsigned n_runs, struct buf *out) {
    uint64_t state = seed;
    buf_add_str(out, "conv_layers,device,device_disk_usage_percent,device_load_percent,"
                     "disk_io_read_bytes,disk_io_write_bytes,execution_number,execution_time,"
                     "filter_details,fully_conn_layers,model_name,pool_layers,total_parameters\n");
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        double fitness = 0.6 + uniform(&state);
        for (size_t j = 0; j < ARRAY_LEN(kinds); j++) {
            for (unsigned run = 1; run <= n_runs; run++) {
                add_run(out, &models[i], &kinds[j], run, fitness, &state);
            }
        }
    }
}

static int usage(FILE *to) {
    fputs("usage: waap place simulate [--runs=N] [--seed=N]\n\n"
          "Prints made-up runs of well-known models on three kinds of device, as CSV for\n"
          "waap place train. The default is 100 runs of each, with seed 42.\n",
          to);
    return to == stdout ? 0 : 2;
}

static bool take_number(const char *arg, const char *flag, uint64_t max, uint64_t *ret_number) {
    size_t len = strlen(flag);
    char *end;
    if (strncmp(arg, flag, len) != 0 || arg[len] < '0' || arg[len] > '9') {
        return false;
    }
    errno = 0;
    uint64_t number = strtoull(arg + len, &end, 10);
    if (*end != '\0' || errno != 0 || number > max) {
        return false;
    }
    *ret_number = number;
    return true;
}

int simulate_main(int argc, char **argv) {
    uint64_t seed = DEFAULT_SEED, n_runs = DEFAULT_RUNS;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return usage(stdout);
        }
        if (!take_number(argv[i], "--runs=", MAX_RUNS, &n_runs) &&
            !take_number(argv[i], "--seed=", UINT64_MAX, &seed)) {
            fprintf(stderr, "waap place simulate: %s: unknown argument\n\n", argv[i]);
            return usage(stderr);
        }
    }
    struct buf out CLEANUP_BUF = {0};
    simulate_write(seed, (unsigned)n_runs, &out);
    if (fputs(buf_str(&out), stdout) == EOF || fflush(stdout) == EOF) {
        perror("waap place simulate: standard output");
        return 1;
    }
    return 0;
}
