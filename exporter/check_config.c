#include "exporter/check_config.h"

#include <stdio.h>

#include "exporter/config.h"
#include "exporter/web_config.h"

/* Only the file counts: what the environment says here need not hold where the file is used. */
static int load(const struct collector *const *collectors, const char *file,
                struct problems *problems) {
    struct config *config CLEANUP_CONFIG = NULL;
    struct config_sources sources = {.file = file};
    int r = config_load(collectors, &sources, &config, problems);
    if (r < 0) {
        return r;
    }
    const char *web_file = settings_string(config->settings, "web.config.file");
    struct web_config *web_config = NULL;
    r = web_file[0] != '\0' ? web_config_load(web_file, &web_config, problems) : 0;
    web_config_unref(web_config);
    return r;
}

static bool check_file(const struct collector *const *collectors, const char *file) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    if (load(collectors, file, &problems) < 0) {
        problems_print(&problems, stderr);
        return false;
    }
    printf("%s: ok\n", file);
    return true;
}

int check_config_main(const struct collector *const *collectors, int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: waap check-config FILE...\n");
        return 2;
    }
    int exit_code = 0;
    for (int i = 1; i < argc; i++) {
        if (!check_file(collectors, argv[i])) {
            exit_code = 2;
        }
    }
    return exit_code;
}
