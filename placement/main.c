#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/version.h"
#include "placement/control/control.h"
#include "placement/place/place.h"

/* `waap control …` becomes this program with the same arguments: argv[0] is the command. Called by
 * its own name, the command comes as argv[1]. */

static const struct {
    const char *name;
    const char *arguments;
    const char *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the name; also answers --help */
} commands[] = {
    {"control", "CONFIG [flags]", "Turn the knobs of plugins by what is measured", control_main},
    {"place", "[flags]", "Say which node runs a model fastest", place_main},
};

int main(int argc, char **argv) {
    for (int at = 0; at < argc && at < 2; at++) {
        for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
            if (strcmp(argv[at], commands[i].name) == 0) {
                return commands[i].run(argc - at, argv + at);
            }
        }
    }
    bool is_asked = argc > 1 && strcmp(argv[1], "--help") == 0;
    FILE *to = is_asked ? stdout : stderr;
    fprintf(to, "usage: waap COMMAND [arguments]   (%s, %s)\n\n", VERSION_TEXT, curl_version());
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        fprintf(to, "  %-8s  %-16s  %s\n", commands[i].name, commands[i].arguments,
                commands[i].summary);
    }
    return is_asked ? 0 : 2;
}
