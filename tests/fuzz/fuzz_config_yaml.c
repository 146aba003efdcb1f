/* Covers 50 % of exporter/settings/config.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/collectors.h"
#include "exporter/settings/config.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What was taken over fits its option: it can be set again. */
static void check_values(const struct config_table *table, struct settings *settings) {
    for (size_t i = 0; i < table->n_entries; i++) {
        const struct option *option = table->options[i];
        bool text = option->type == OPTION_STRING || option->type == OPTION_REGEX;
        if (text && !option->repeatable) {
            char *value CLEANUP_FREE = strdup(settings_string(settings, option->name));
            assert(settings_set(settings, option, SETTINGS_FLAG, value, NULL) == 0);
        } else if (option->repeatable) {
            for (const char *const *p = settings_list(settings, option->name); *p != NULL; p++) {
                int64_t number;
                assert(option_parse(option, *p, &number, NULL) == 0);
            }
        } else if (option->type == OPTION_CHOICE) {
            size_t choice = settings_choice(settings, option->name);
            assert(strcmp(option->choices[choice], settings_string(settings, option->name)) == 0);
        }
    }
}

static void check_problems(const struct problems *problems) {
    for (size_t i = 0; i < problems->n_lines; i++) {
        assert(strncmp(problems->lines[i], "f:", 2) == 0);
        assert(strchr(problems->lines[i], '\n') == NULL);
    }
}

/* A configuration file: any bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static struct config_table table;
    if (table.n_entries == 0) {
        config_table_init(&table, collectors_all);
    }
    struct settings *settings CLEANUP_SETTINGS = settings_create(table.options, table.n_entries);
    struct problems problems CLEANUP_PROBLEMS = {0};
    config_read_yaml(&table, "f", (const char *)data, len, settings, &problems);
    check_values(&table, settings);
    check_problems(&problems);
    return 0;
}
