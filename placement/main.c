#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/version.h"
#include "placement/control/control.h"
#include "placement/place/place.h"

/* `waap control …` becomes this program with the same arguments: argv[0] is the command. Called by
 * its own name, the command comes as argv[1]. */

struct command {
    const char *name;
    const char *arguments;
    const char *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the name; also answers --help */
};

static const struct command commands[] = {
    {"control", "CONFIG [flags]", "Turn the knobs of plugins by what is measured", control_main},
    {"place", "[flags]", "Say which node runs a model fastest", place_main},
};

static const struct command *find_command(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static int print_usage(FILE *to) {
    fprintf(to, "usage: waap COMMAND [arguments]   (%s, %s)\n\n", VERSION_TEXT, curl_version());
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        fprintf(to, "  %-8s  %-16s  %s\n", commands[i].name, commands[i].arguments,
                commands[i].summary);
    }
    return to == stdout ? 0 : 2;
}

int main(int argc, char **argv) {
    const struct command *command = argc > 0 ? find_command(argv[0]) : NULL;
    if (command == NULL && argc > 1) {
        argc--;
        argv++;
        command = find_command(argv[0]);
    }
    if (command != NULL) {
        return command->run(argc, argv);
    }
    return print_usage(argc > 0 && strcmp(argv[0], "--help") == 0 ? stdout : stderr);
}
