#include "exporter/settings/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/file.h"
#include "exporter/settings/config_read.h"

enum { CONFIG_MAX_FILE = 1 << 20 };

static int out_of_memory(struct problems *problems) {
    problems_add(problems, "configuration", 0, 0, "out of memory");
    return -ENOMEM;
}

/* Where the name of the file was given: a file that cannot be opened is a mistake there. */
static const char *file_named_by(const struct config *config,
                                 const struct config_sources *sources) {
    if (sources->file != NULL) {
        return sources->file;
    }
    bool flag = settings_origin(config->settings, "config.file") == SETTINGS_FLAG;
    return flag ? "--config.file" : "WAAP_CONFIG_FILE";
}

static int read_file(struct config *config, const struct config_sources *sources,
                     struct problems *problems) {
    const char *file = sources->file;
    file = file != NULL ? file : settings_string(config->settings, "config.file");
    if (file[0] == '\0') {
        return 0;
    }
    config->file = strdup(file);
    if (config->file == NULL) {
        return out_of_memory(problems);
    }
    struct buf text CLEANUP_BUF = {0};
    struct error err;
    if (file_read_stored(file, CONFIG_MAX_FILE, &text, &err) < 0) {
        problems_add(problems, file_named_by(config, sources), 0, 0, "%s", err.text);
        return -EINVAL;
    }
    config_read_yaml(&config->table, file, buf_str(&text), text.len, config->settings, problems);
    return 0;
}

/* With collector.disable-defaults a collector runs only where somebody said so. */
static int resolve_switches(struct config *config) {
    if (!settings_bool(config->settings, "collector.disable-defaults")) {
        return 0;
    }
    for (size_t i = 0; i < config->table.n_switches; i++) {
        const struct option *option = &config->table.switches[i];
        if (settings_origin(config->settings, option->name) == SETTINGS_DEFAULT &&
            settings_set(config->settings, option, SETTINGS_DEFAULT, "false", NULL) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

int config_load(const struct collector *const *collectors, const struct config_sources *sources,
                struct config **ret_config, struct problems *problems) {
    struct config *config CLEANUP_CONFIG = calloc(1, sizeof(*config));
    if (config == NULL) {
        return out_of_memory(problems);
    }
    atomic_init(&config->refs, 1);
    if (config_table_init(&config->table, collectors) < 0) {
        return out_of_memory(problems);
    }
    config->settings = settings_create(config->table.options, config->table.n_entries);
    if (config->settings == NULL) {
        return out_of_memory(problems);
    }
    size_t n_before = problems->n_lines;
    config_read_flags(&config->table, sources->argc, sources->argv, config->settings, problems);
    config_read_environment(&config->table, sources->variables, config->settings, problems,
                            &config->warnings);
    int r = read_file(config, sources, problems);
    if (r < 0 || problems->n_lines > n_before) {
        return r < 0 ? r : -EINVAL;
    }
    if (resolve_switches(config) < 0) {
        return out_of_memory(problems);
    }
    *ret_config = TAKE(config);
    return 0;
}

int config_from_command_line(const struct collector *const *collectors, int argc, char **argv,
                             struct config **ret_config, struct problems *problems) {
    struct config_sources sources = {.variables = environ, .argc = argc, .argv = argv};
    return config_load(collectors, &sources, ret_config, problems);
}

struct config *config_ref(struct config *config) {
    atomic_fetch_add(&config->refs, 1);
    return config;
}

void config_unref(struct config *config) {
    if (config == NULL || atomic_fetch_sub(&config->refs, 1) > 1) {
        return;
    }
    listen_names_destroy(config->names);
    settings_destroy(config->settings);
    config_table_finish(&config->table);
    problems_finish(&config->warnings);
    free(config->file);
    free(config);
}
