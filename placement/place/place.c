#include "placement/place/place.h"

#include <stdio.h>
#include <string.h>

#include "exporter/settings/flags.h"
#include "placement/place/options.h"
#include "placement/place/service.h"
#include "placement/predictor/collect.h"
#include "placement/predictor/simulate.h"
#include "placement/predictor/train.h"

static const struct {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the name; also answers --help */
} commands[] = {
    {"collect", "Measure how long a model's application runs here", collect_main},
    {"simulate", "Print made-up runs to train with", simulate_main},
    {"train", "Train the predictor with measured runs", train_main},
};

static int help(void) {
    printf("usage: waap place [flags]\n"
           "       waap place COMMAND [arguments]\n\n"
           "Answers POST /api/profiling and POST /upload: on which of the nodes that Prometheus\n"
           "knows a model would run fastest.\n\n");
    flags_print_help(place_options, place_n_options, stdout);
    printf("  --web.…, --log.…               As of waap serve; the address is :7001\n\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        printf("  waap place %-9s  %s\n", commands[i].name, commands[i].summary);
    }
    return 0;
}

int place_main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return flags_ask_for_help(argc, argv) ? help() : place_service_main(argc, argv);
}
