#include "placement/place.h"

#include <stdio.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "placement/simulate.h"
#include "placement/train.h"

static const struct {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the name; also answers --help */
} commands[] = {
    {"simulate", "Print made-up runs to train with", simulate_main},
    {"train", "Train the predictor with measured runs", train_main},
};

static int usage(FILE *to) {
    fputs("usage: waap place COMMAND [arguments]\n\n", to);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        fprintf(to, "  %-9s  %s\n", commands[i].name, commands[i].summary);
    }
    return to == stdout ? 0 : 2;
}

int place_main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return usage(argc > 1 && strcmp(argv[1], "--help") == 0 ? stdout : stderr);
}
